/* SPDX-License-Identifier: MIT */
#include "analysis/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

void dp_json_start(dp_json *json, FILE *stream)
{
    *json = (dp_json){.stream = stream};
}

void dp_json_finish(dp_json *json)
{
    (void)fputc('\n', json->stream);
}

static void new_line(const dp_json *json)
{
    if (json->compact) {
        (void)fputc(' ', json->stream);
    } else {
        (void)fprintf(json->stream, "\n%*s", 2 * json->depth, "");
    }
}

/* What has to stand before a value or key: a comma, a line break, or nothing after a key. */
static void separate(dp_json *json)
{
    if (json->keyed) {
        json->keyed = false;
        return;
    }
    if (json->depth == 0) {
        return;
    }
    if (json->used[json->depth - 1]) {
        (void)fputc(',', json->stream);
        new_line(json);
    } else if (!json->compact) {
        new_line(json);
    }
    json->used[json->depth - 1] = true;
}

static void open_container(dp_json *json, bool array, bool line)
{
    assert(json->depth < DP_JSON_DEPTH);
    separate(json);
    (void)fputc(array ? '[' : '{', json->stream);
    json->used[json->depth] = false;
    json->array[json->depth] = array;
    json->depth++;
    if (line && !json->compact) {
        json->compact = true;
        json->compact_depth = json->depth;
    }
}

void dp_json_object(dp_json *json)
{
    open_container(json, false, false);
}

void dp_json_array(dp_json *json)
{
    open_container(json, true, false);
}

void dp_json_object_line(dp_json *json)
{
    open_container(json, false, true);
}

void dp_json_array_line(dp_json *json)
{
    open_container(json, true, true);
}

void dp_json_close(dp_json *json)
{
    assert(json->depth > 0);
    json->depth--;
    if (json->used[json->depth] && !json->compact) {
        new_line(json);
    }
    if (json->compact && json->depth < json->compact_depth) {
        json->compact = false;
    }
    (void)fputc(json->array[json->depth] ? ']' : '}', json->stream);
}

/* Length of the UTF-8 sequence at text (RFC 3629: shortest form, no surrogates), 0 if it is none.
 */
static int utf8_length(const unsigned char *text)
{
    const unsigned char lead = text[0];
    if (lead < 0x80) {
        return 1;
    }
    const int length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4) {
        return 0;
    }
    for (int i = 1; i < length; i++) {
        if ((text[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    const bool overlong = (lead == 0xE0 && text[1] < 0xA0) || (lead == 0xF0 && text[1] < 0x90);
    const bool beyond = (lead == 0xED && text[1] > 0x9F) || (lead == 0xF4 && text[1] > 0x8F);
    return overlong || beyond ? 0 : length;
}

static void put_string(const dp_json *json, const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    (void)fputc('"', json->stream);
    while (*c != '\0') {
        const int length = utf8_length(c);
        if (*c == '"' || *c == '\\') {
            (void)fprintf(json->stream, "\\%c", *c);
        } else if (*c == '\n') {
            (void)fputs("\\n", json->stream);
        } else if (*c == '\t') {
            (void)fputs("\\t", json->stream);
        } else if (*c < 0x20 || *c == 0x7F) {
            (void)fprintf(json->stream, "\\u%04x", *c);
        } else if (length == 0) {
            (void)fputs("\\ufffd", json->stream);
        } else {
            (void)fwrite(c, 1, (size_t)length, json->stream);
        }
        c += length > 0 ? length : 1;
    }
    (void)fputc('"', json->stream);
}

void dp_json_key(dp_json *json, const char *key)
{
    separate(json);
    put_string(json, key);
    (void)fputs(": ", json->stream);
    json->keyed = true;
}

void dp_json_text(dp_json *json, const char *text)
{
    separate(json);
    put_string(json, text);
}

void dp_json_i64(dp_json *json, int64_t value)
{
    separate(json);
    (void)fprintf(json->stream, "%" PRId64, value);
}

void dp_json_u64(dp_json *json, uint64_t value)
{
    separate(json);
    (void)fprintf(json->stream, "%" PRIu64, value);
}

const char *dp_f32_text(float value, char text[32])
{
    if (isfinite(value)) {
        (void)snprintf(text, 32, "%.9g", (double)value);
        return text;
    }
    return dp_f64_text((double)value, text);
}

const char *dp_f64_text(double value, char text[32])
{
    if (isfinite(value)) {
        (void)snprintf(text, 32, "%.17g", value);
    } else {
        (void)snprintf(text, 32, "%s", isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
    }
    return text;
}

static void put_number(dp_json *json, const char *text, bool finite)
{
    separate(json);
    (void)fprintf(json->stream, finite ? "%s" : "\"%s\"", text);
}

void dp_json_f32(dp_json *json, float value)
{
    char text[32];
    put_number(json, dp_f32_text(value, text), isfinite(value));
}

void dp_json_f64(dp_json *json, double value)
{
    char text[32];
    put_number(json, dp_f64_text(value, text), isfinite(value));
}

void dp_json_bool(dp_json *json, bool value)
{
    put_number(json, value ? "true" : "false", true);
}

void dp_json_null(dp_json *json)
{
    put_number(json, "null", true);
}

void dp_json_bits(dp_json *json, uint64_t bits, int digits)
{
    separate(json);
    (void)fprintf(json->stream, "\"0x%0*" PRIX64 "\"", digits, bits);
}

void dp_json_member_text(dp_json *json, const char *key, const char *text)
{
    dp_json_key(json, key);
    dp_json_text(json, text);
}

void dp_json_member_i64(dp_json *json, const char *key, int64_t value)
{
    dp_json_key(json, key);
    dp_json_i64(json, value);
}

void dp_json_member_u64(dp_json *json, const char *key, uint64_t value)
{
    dp_json_key(json, key);
    dp_json_u64(json, value);
}

void dp_json_member_f64(dp_json *json, const char *key, double value)
{
    dp_json_key(json, key);
    dp_json_f64(json, value);
}

void dp_json_member_bool(dp_json *json, const char *key, bool value)
{
    dp_json_key(json, key);
    dp_json_bool(json, value);
}
