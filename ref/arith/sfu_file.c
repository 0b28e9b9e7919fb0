/* SPDX-License-Identifier: MIT */
#include "ref/arith/sfu_file.h"

#include <stdlib.h>

#include "ref/arith/sfu.h"

#define MAGIC "directp sfu capture 1"

static const char *const names[2] = {"ex2.approx.ftz.f32", "rcp.approx.ftz.f32"};

const char *dp_sfu_function_name(dp_sfu_function function)
{
    return names[function];
}

static uint32_t reference(dp_sfu_function function, uint32_t i)
{
    return function == DP_SFU_EX2 ? dp_ex2_octave(i) : dp_rcp_octave(i);
}

uint32_t dp_sfu_entry(const dp_sfu_table *table, uint32_t i)
{
    return reference(table->function, i) + (uint32_t)dp_sfu_delta(table, i);
}

uint32_t dp_sfu_crc32(const dp_sfu_table *table)
{
    uint32_t step[256];
    for (uint32_t n = 0; n < 256; n++) {
        uint32_t c = n;
        for (int k = 0; k < 8; k++) {
            c = c >> 1 ^ ((c & 1u) != 0 ? 0xEDB88320u : 0u);
        }
        step[n] = c;
    }
    uint32_t crc = 0xFFFFFFFFu;
    for (uint32_t i = 0; i < DP_SFU_ENTRIES; i++) {
        const uint32_t word = dp_sfu_entry(table, i);
        for (int k = 0; k < 32; k += 8) {
            crc = crc >> 8 ^ step[(crc ^ word >> k) & 0xFFu];
        }
    }
    return ~crc;
}

static size_t word_count(unsigned bits)
{
    return (size_t)DP_SFU_ENTRIES / 64u * bits;
}

/* The value of a "key: value" line, newline removed; NULL if the line has another key. */
static const char *value_of(char *line, const char *key)
{
    const size_t length = strlen(key);
    line[strcspn(line, "\n")] = '\0';
    return strncmp(line, key, length) == 0 && strncmp(line + length, ": ", 2) == 0
               ? line + length + 2
               : NULL;
}

static bool take_text(char *to, size_t size, char *line, const char *key)
{
    const char *value = value_of(line, key);
    if (value == NULL || strlen(value) >= size) {
        return false;
    }
    memcpy(to, value, strlen(value) + 1);
    return true;
}

static bool take_function(dp_sfu_table *table, char *line)
{
    const char *value = value_of(line, "function");
    for (int f = 0; value != NULL && f < 2; f++) {
        if (strcmp(value, names[f]) == 0) {
            table->function = (dp_sfu_function)f;
            return true;
        }
    }
    return false;
}

static bool take_number(uint32_t *to, char *line, const char *key, int base)
{
    const char *value = value_of(line, key);
    char *end = NULL;
    if (value == NULL || *value == '\0') {
        return false;
    }
    *to = (uint32_t)strtoul(value, &end, base);
    return *end == '\0';
}

/* The eight lines of the header, in their fixed order. */
static bool read_header(dp_sfu_table *table, FILE *file)
{
    char line[160];
    uint32_t bits = 0;
    for (int n = 0; n < 8; n++) {
        if (fgets(line, sizeof line, file) == NULL) {
            return false;
        }
        const bool good = n == 0   ? strcmp(line, MAGIC "\n") == 0
                          : n == 1 ? take_function(table, line)
                          : n == 2 ? take_text(table->device, sizeof table->device, line, "device")
                          : n == 3 ? take_text(table->driver, sizeof table->driver, line, "driver")
                          : n == 4
                              ? take_text(table->toolkit, sizeof table->toolkit, line, "toolkit")
                          : n == 5 ? take_number(&bits, line, "delta-bits", 10)
                          : n == 6 ? take_number(&table->crc32, line, "crc32", 16)
                                   : strcmp(line, "\n") == 0;
        if (!good) {
            return false;
        }
    }
    table->bits = bits;
    return bits == 2 || bits == 4 || bits == 8 || bits == 16;
}

/* Words whose bytes in memory are least significant first to or from numbers; its own inverse. */
static void swap_to_little_endian(uint64_t *words, size_t count)
{
    for (size_t n = 0; n < count; n++) {
        uint8_t bytes[8];
        memcpy(bytes, &words[n], sizeof bytes);
        uint64_t word = 0;
        for (unsigned k = 0; k < 8; k++) {
            word |= (uint64_t)bytes[k] << (8 * k);
        }
        words[n] = word;
    }
}

static uint64_t *read_words(FILE *file, size_t count)
{
    uint64_t *words = malloc(count * sizeof *words);
    if (words != NULL && fread(words, sizeof *words, count, file) != count) {
        free(words);
        return NULL;
    }
    if (words != NULL) {
        swap_to_little_endian(words, count);
    }
    return words;
}

bool dp_sfu_read(dp_sfu_table *table, FILE *file, const char *where, dp_error *error)
{
    const dp_sfu_table empty = {0};
    *table = empty;
    if (!read_header(table, file)) {
        *table = empty;
        return dp_fail(error,
                       "%s: not a capture of a special function: make one with `directp capture`",
                       where);
    }
    table->words = read_words(file, word_count(table->bits));
    if (table->words == NULL) {
        *table = empty;
        return dp_fail(error, "%s: the table is cut short or does not fit in memory: copy it again",
                       where);
    }
    const uint32_t crc = dp_sfu_crc32(table);
    if (crc != table->crc32) {
        const uint32_t want = table->crc32;
        dp_sfu_release(table);
        return dp_fail(error,
                       "%s: CRC-32 of the results is %08x, the header says %08x: copy it again",
                       where, (unsigned)crc, (unsigned)want);
    }
    return true;
}

void dp_sfu_release(dp_sfu_table *table)
{
    const dp_sfu_table empty = {0};
    free((void *)table->words);
    *table = empty;
}

bool dp_sfu_write(const dp_sfu_table *table, FILE *file, const char *where, dp_error *error)
{
    (void)fprintf(file, MAGIC "\nfunction: %s\ndevice: %s\ndriver: %s\ntoolkit: %s\n",
                  names[table->function], table->device, table->driver, table->toolkit);
    (void)fprintf(file, "delta-bits: %u\ncrc32: %08x\n\n", table->bits, (unsigned)table->crc32);
    const size_t count = word_count(table->bits);
    uint64_t *words = malloc(count * sizeof *words);
    if (words == NULL) {
        return dp_fail(error, "%s: no memory to write the capture: free some", where);
    }
    memcpy(words, table->words, count * sizeof *words);
    swap_to_little_endian(words, count);
    (void)fwrite(words, sizeof *words, count, file);
    free(words);
    if (fflush(file) != 0 || ferror(file)) {
        return dp_fail(error, "%s: cannot write the capture: check the free space", where);
    }
    return true;
}

/* The narrowest width that holds every delta; 0 if 16 bits do not. */
static unsigned width_needed(dp_sfu_function function, const uint32_t *results)
{
    int32_t low = 0, high = 0;
    for (uint32_t i = 0; i < DP_SFU_ENTRIES; i++) {
        const int32_t delta = (int32_t)(results[i] - reference(function, i));
        low = delta < low ? delta : low;
        high = delta > high ? delta : high;
    }
    for (unsigned bits = 2; bits <= 16; bits *= 2) {
        const int32_t limit = (int32_t)1 << (bits - 1);
        if (low >= -limit && high < limit) {
            return bits;
        }
    }
    return 0;
}

bool dp_sfu_from_results(dp_sfu_table *table, const uint32_t *results, dp_error *error)
{
    const unsigned bits = width_needed(table->function, results);
    if (bits == 0) {
        return dp_fail(error,
                       "%s: results are farther than 32767 ulp from the function: check the inputs",
                       names[table->function]);
    }
    uint64_t *words = calloc(word_count(bits), sizeof *words);
    if (words == NULL) {
        return dp_fail(error, "%s: no memory for the table: free some", names[table->function]);
    }
    const unsigned per_word = 64u / bits;
    const uint64_t mask = (UINT64_C(1) << bits) - 1;
    for (uint32_t i = 0; i < DP_SFU_ENTRIES; i++) {
        const uint64_t delta = results[i] - reference(table->function, i);
        words[i / per_word] |= (delta & mask) << (bits * (i % per_word));
    }
    table->bits = bits;
    table->words = words;
    table->crc32 = dp_sfu_crc32(table);
    return true;
}
