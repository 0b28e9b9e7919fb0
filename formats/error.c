/* SPDX-License-Identifier: MIT */
#include "formats/error.h"

#include <stdarg.h>
#include <stdio.h>

bool(dp_fail)(dp_error *error, const char *format, ...)
{
    if (error != NULL && error->text[0] == '\0') {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(error->text, sizeof error->text, format, arguments);
        va_end(arguments);
    }
    return false;
}
