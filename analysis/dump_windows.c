/* SPDX-License-Identifier: MIT
 *
 * Windows of query rows: which rows of the operator a dataset holds, and the strips that the
 * comparer walks, each within one query tile and with the same datasets throughout.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/dump_open.h"

static bool put_windows(const dp_dump *dump, const char *path, const int64_t *list, size_t count,
                        size_t extent, dp_dump_windows *w, dp_error *error)
{
    if (count == 0 || count > DP_DUMP_WINDOWS || extent % count != 0) {
        return dp_fail(error,
                       "%s:%s: row_first names %zu windows for %zu rows: at most %d windows "
                       "of one length",
                       dump->path, path, count, extent, (int)DP_DUMP_WINDOWS);
    }
    w->count = count;
    w->length = extent / count;
    for (size_t i = 0; i < count; i++) {
        if (list[i] < 0 || list[i] > (int64_t)1 << 40) {
            return dp_fail(error, "%s:%s: row_first is %" PRId64 ": count from 0", dump->path, path,
                           list[i]);
        }
        w->first[i] = (size_t)list[i];
        if (i > 0 && w->first[i] < w->first[i - 1] + w->length) {
            return dp_fail(error,
                           "%s:%s: windows of %zu rows from %zu and %zu overlap: name them in "
                           "ascending order",
                           dump->path, path, w->length, w->first[i - 1], w->first[i]);
        }
    }
    return true;
}

bool dp_dump_take_windows(dp_dump *dump, dp_dump_id id, dp_error *error)
{
    const char *path = dp_dump_datasets[id].path;
    const char *from = dp_h5_has_attribute(&dump->file, path, "row_first") ? path : "/";
    const size_t extent = dump->file_rows[id];
    static const int64_t origin = 0;
    int64_t *list = NULL;
    size_t count = 1;
    if (extent == 0) {
        return dp_fail(error, "%s:%s: it has no rows: write its data", dump->path, path);
    }
    if (!dp_h5_has_attribute(&dump->file, from, "row_first")) {
        if (dump->full_rows != 0 && dump->full_rows != extent) {
            return dp_fail(
                error,
                "%s:%s: its number of query rows is %zu, elsewhere in the file it is %zu: "
                "say which rows it holds in its attribute row_first",
                dump->path, path, extent, dump->full_rows);
        }
        dump->full_rows = extent;
        return put_windows(dump, path, &origin, 1, extent, &dump->window[id], error);
    }
    const bool good = dp_h5_i64_list(&dump->file, from, "row_first", &list, &count, error) &&
                      put_windows(dump, path, list, count, extent, &dump->window[id], error);
    free(list);
    return good;
}

static int ascending(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a;
    const size_t y = *(const size_t *)b;
    return (x > y) - (x < y);
}

static bool in_some(const dp_dump *dump, size_t row)
{
    size_t at;
    bool any = false;
    bool held = false;
    for (int d = 0; d < DP_DUMP_DATASETS; d++) {
        const bool query = dump->window[d].count > 0;
        any = any || query;
        held = held || (query && dp_dump_find_row(dump, (dp_dump_id)d, row, &at));
    }
    return held || !any;
}

/* Rows at which a window or a query tile begins or ends, ascending, without repeats. */
static size_t *boundaries(const dp_dump *dump, size_t *count)
{
    size_t room = 2;
    size_t end = 0;
    for (int d = 0; d < DP_DUMP_DATASETS; d++) {
        const dp_dump_windows *w = &dump->window[d];
        room += 2 * w->count;
        for (size_t i = 0; i < w->count; i++) {
            end = w->first[i] + w->length > end ? w->first[i] + w->length : end;
        }
    }
    end = end > 0 ? end : dump->queries;
    size_t n = 0;
    size_t *at = malloc((room + end / DP_TILE + 2) * sizeof *at);
    if (at == NULL) {
        return NULL;
    }
    for (size_t row = 0; row < end; row += DP_TILE) {
        at[n++] = row;
    }
    at[n++] = end;
    for (int d = 0; d < DP_DUMP_DATASETS; d++) {
        const dp_dump_windows *w = &dump->window[d];
        for (size_t i = 0; i < w->count; i++) {
            at[n++] = w->first[i];
            at[n++] = w->first[i] + w->length;
        }
    }
    qsort(at, n, sizeof *at, ascending);
    *count = 0;
    for (size_t i = 0; i < n; i++) {
        if (*count == 0 || at[*count - 1] != at[i]) {
            at[(*count)++] = at[i];
        }
    }
    return at;
}

/* A file may claim rows that no machine holds. */
static bool sane(const dp_dump *dump, dp_error *error)
{
    for (int d = 0; d < DP_DUMP_DATASETS; d++) {
        const dp_dump_windows *w = &dump->window[d];
        if (w->count > 0 &&
            (w->first[w->count - 1] > (size_t)1 << 28 || w->length > (size_t)1 << 28)) {
            return dp_fail(error, "%s:%s: query rows beyond 2^28: check row_first", dump->path,
                           dp_dump_datasets[d].path);
        }
    }
    return true;
}

bool dp_dump_make_strips(dp_dump *dump, dp_error *error)
{
    size_t count = 0;
    if (!sane(dump, error)) {
        return false;
    }
    size_t *at = boundaries(dump, &count);
    dump->strips = at != NULL && count > 0 ? malloc(count * sizeof *dump->strips) : NULL;
    if (dump->strips == NULL) {
        free(at);
        return dp_fail(error, "%s: not enough memory", dump->path);
    }
    for (size_t i = 0; i + 1 < count; i++) {
        if (in_some(dump, at[i])) {
            dump->strips[dump->strip_count++] = (dp_dump_strip){at[i], at[i + 1] - at[i]};
        }
    }
    free(at);
    if (dump->strip_count > 0) {
        const dp_dump_strip *last = &dump->strips[dump->strip_count - 1];
        dump->row_first = dump->strips[0].first;
        dump->rows = last->first + last->rows - dump->row_first;
    }
    return true;
}
