/* SPDX-License-Identifier: MIT
 *
 * Fields of a struct by name: "name=value" into them, all of them as text.
 */
#ifndef DP_REF_FORWARD_FIELDS_H
#define DP_REF_FORWARD_FIELDS_H

#include <stddef.h>

#include "formats/error.h"

enum { DP_FIELD_CHOICES = 16 };

typedef enum {
    DP_FIELD_BOOL,
    DP_FIELD_INT,
    DP_FIELD_FLOAT,
    DP_FIELD_CHOICE /* an enum from 0 on */
} dp_field_kind;

typedef struct {
    const char *name;
    dp_field_kind kind;
    size_t offset;
    int low, high; /* INT: the range accepted             */
    /* CHOICE and BOOL: text of 0, 1, 2, ... INT: the reason of the range. NULL ends the list. */
    const char *choices[DP_FIELD_CHOICES];
} dp_field;

/* Set one field of `object` from "name=value"; `what` names the kind of field in errors. */
bool dp_fields_set(const dp_field *fields, size_t count, void *object, const char *assignment,
                   const char *what, dp_error *error);
/* Every field as "name=value", one a line, into text. */
void dp_fields_text(const dp_field *fields, size_t count, const void *object, char *text,
                    size_t size);

#endif
