/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/attend_choice.h"
#include "analysis/dump_open.h"
#include "formats/layout.h"

/* ---- scale layouts --------------------------------------------------------------------------- */

static bool page_kind(const char *layout, dp_pages_kind *kind)
{
    static const struct {
        const char *name;
        dp_pages_kind kind;
    } pages[] = {{"pages-q", DP_PAGES_Q},
                 {"pages-k", DP_PAGES_K_DUPLICATED},
                 {"pages-k64", DP_PAGES_K64},
                 {"pages-v", DP_PAGES_V},
                 {"pages-duda", DP_PAGES_DUDA}};
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        if (strcmp(pages[i].name, layout) == 0) {
            *kind = pages[i].kind;
            return true;
        }
    }
    return false;
}

static const char *plain_layout(const char *layout)
{
    if (strncmp(layout, "atom", 4) == 0) {
        layout += 4; /* "atom128x4" is "128x4" */
    }
    return strcmp(layout, "64x4") == 0 ? "sm120" : layout;
}

static bool wrong_size(const dp_dump *dump, const char *path, const char *layout, size_t given,
                       size_t needed, dp_error *error)
{
    return dp_fail(error, "%s:%s: %zu bytes, and layout %s of these extents has %zu: check it",
                   dump->path, path, given, layout, needed);
}

static bool from_pages(const dp_dump *dump, dp_dump_id id, dp_pages_kind kind, size_t heads,
                       size_t rows, size_t width, const uint8_t *bytes, size_t given,
                       const char *layout, uint8_t *out, dp_error *error)
{
    const bool v = id == DP_DUMP_V_SCALE;
    const dp_pages pages = {kind, dump->batch, heads, v ? dump->keys : rows};
    if (v != (kind == DP_PAGES_V) || dump->features != DP_HEAD_DIM) {
        return dp_fail(error, "%s:%s: layout %s is not one of this tensor", dump->path,
                       dp_dump_datasets[id].path, layout);
    }
    if (given != dp_pages_bytes(pages)) {
        return wrong_size(dump, dp_dump_datasets[id].path, layout, given, dp_pages_bytes(pages),
                          error);
    }
    for (size_t i = 0; i < dump->batch * heads * rows * width; i++) {
        const dp_pages_at at = {.batch = i / width / rows / heads,
                                .head = i / width / rows % heads,
                                .row = i / width % rows,
                                .col = i % width};
        out[i] = bytes[dp_pages_offset(pages, at)];
    }
    return true;
}

bool dp_dump_take_pages(dp_dump *dump, dp_dump_id id, const char *layout, dp_error *error)
{
    const char *path = dp_dump_datasets[id].path;
    const size_t heads = dp_dump_heads(dump, id);
    const size_t rows = dp_dump_head_rows(dump, id);
    const size_t width = dp_dump_width(dump, id);
    const size_t count = dump->batch * heads * rows;
    dp_h5_shape shape;
    void *bytes = NULL;
    dp_layout kind = DP_LAYOUT_LINEAR;
    dp_pages_kind pages = DP_PAGES_Q;
    const bool paged = page_kind(layout, &pages);
    if (!paged && !dp_layout_find(plain_layout(layout), &kind)) {
        return dp_fail(error,
                       "%s:%s: layout '%s' is not known: use linear, atom128x4, atom64x4, "
                       "pages-q, pages-k, pages-k64, pages-v or pages-duda",
                       dump->path, path, layout);
    }
    if (!dp_h5_read(&dump->file, path, DP_H5_U8, -1, &shape, &bytes, error)) {
        return false;
    }
    uint8_t *out = malloc(count * width > 0 ? count * width : 1);
    bool good = out != NULL || dp_fail(error, "%s:%s: not enough memory", dump->path, path);
    const dp_layout_map map = {kind, rows, width};
    if (good && paged) {
        good =
            from_pages(dump, id, pages, heads, rows, width, bytes, shape.count, layout, out, error);
    } else if (good && shape.count != dump->batch * heads * dp_layout_bytes(map)) {
        good = wrong_size(dump, path, layout, shape.count,
                          dump->batch * heads * dp_layout_bytes(map), error);
    }
    for (size_t h = 0; good && !paged && h < dump->batch * heads; h++) {
        dp_layout_unswizzle(map, (const uint8_t *)bytes + h * dp_layout_bytes(map),
                            out + h * rows * width);
    }
    free(bytes);
    dump->memory[id] = out;
    dump->present[id] = good;
    dump->file_width[id] = width;
    return good;
}

/* ---- global scales, key order ------------------------------------------------------------------
 */

static bool take_globals(dp_dump *dump, const char *path, size_t heads, float **scales,
                         dp_error *error)
{
    dp_h5_shape shape;
    size_t zeros = 0;
    if (!dp_h5_exists(&dump->file, path)) {
        return true;
    }
    return dp_h5_read_scales(&dump->file, path, 2, &shape, scales, &zeros, error) &&
           (shape.count == dump->batch * heads ||
            dp_fail(error, "%s:%s: %zu scales for %zu heads: write one a head", dump->path, path,
                    shape.count, dump->batch * heads));
}

static bool take_order(dp_dump *dump, dp_error *error)
{
    dump->key_order = malloc(dump->keys * sizeof *dump->key_order);
    bool *seen = calloc(dump->keys, sizeof *seen);
    bool good = dump->key_order != NULL && seen != NULL;
    for (size_t i = 0; good && i < dump->keys; i++) {
        dump->key_order[i] = (int32_t)i;
    }
    if (!good) {
        (void)dp_fail(error, "%s: not enough memory", dump->path);
    }
    dp_h5_shape shape;
    int64_t *given = NULL;
    if (good && dp_h5_exists(&dump->file, "/inputs/key_order")) {
        good = dp_h5_read_integers(&dump->file, "/inputs/key_order", 1, &shape, &given, error);
        dump->order_given = good;
        if (good && shape.count != dump->keys) {
            good = dp_fail(error, "%s:/inputs/key_order: %zu entries for %zu keys: write one each",
                           dump->path, shape.count, dump->keys);
        }
    }
    for (size_t i = 0; good && given != NULL && i < dump->keys; i++) {
        if (given[i] < 0 || (uint64_t)given[i] >= dump->keys || seen[given[i]]) {
            good = dp_fail(error,
                           "%s:/inputs/key_order: entry %zu is %" PRId64 ": name every key once",
                           dump->path, i, given[i]);
        } else {
            seen[given[i]] = true;
            dump->key_order[i] = (int32_t)given[i];
        }
    }
    free(given);
    free(seen);
    return good;
}

bool dp_dump_take_scales(dp_dump *dump, dp_error *error)
{
    return take_globals(dump, "/quantize/q_global", dump->head_count, &dump->q_global, error) &&
           take_globals(dump, "/quantize/k_global", dump->kv_heads, &dump->k_global, error) &&
           take_order(dump, error);
}

/* ---- the launch --------------------------------------------------------------------------------
 */

/* Text of a root attribute, or of its override; refused when there is neither. */
static bool need_text(const dp_dump *dump, const char *name, const char *given, const char *option,
                      char **text, dp_error *error)
{
    if (given != NULL) {
        *text = malloc(strlen(given) + 1);
        if (*text != NULL) {
            memcpy(*text, given, strlen(given) + 1);
        }
        return *text != NULL || dp_fail(error, "%s: not enough memory", dump->path);
    }
    if (!dp_h5_has_attribute(&dump->file, "/", name)) {
        return dp_fail(error,
                       "%s:/: it does not say its %s, and that is not guessed: write the root "
                       "attribute, or give %s",
                       dump->path, name, option);
    }
    return dp_h5_text(&dump->file, "/", name, text, error);
}

/* "name=value" a line, as settings separated by commas; a floor of -inf is the default already. */
static bool apply_lines(const dp_dump *dump, const char *name, const char *text,
                        dp_forward_policy *policy, dp_switches *switches, dp_mma_switches *mma,
                        dp_error *error)
{
    while (*text != '\0') {
        const size_t length = strcspn(text, "\n");
        char line[128];
        if (length >= sizeof line) {
            return dp_fail(error, "%s:/: a line of %s is too long", dump->path, name);
        }
        memcpy(line, text, length);
        line[length] = '\0';
        text += length + (text[length] == '\n' ? 1 : 0);
        dp_error inner = {""};
        if (length > 0 && strcmp(line, "floor=-inf") != 0 &&
            !dp_apply_settings(line, policy, switches, mma, &inner)) {
            return dp_fail(error, "%s:/: %s: %s", dump->path, name, inner.text);
        }
    }
    return true;
}

static bool find_epoch(const dp_dump *dump, const char *text, dp_epoch *epoch, dp_error *error)
{
    *epoch = strcmp(text, "R") == 0 ? DP_EPOCH_R : DP_EPOCH_S;
    return strcmp(text, "R") == 0 || strcmp(text, "S") == 0 ||
           dp_fail(error, "%s:/: epoch '%.16s': it is S or R", dump->path, text);
}

/* The model of the exponential unit: of the attribute or the override, exact when neither says. */
static bool find_sfu(const dp_dump *dump, const char *given, const dp_sfu **sfu, dp_error *error)
{
    char *text = NULL;
    if (given == NULL && dp_h5_has_attribute(&dump->file, "/", "sfu") &&
        !dp_h5_text(&dump->file, "/", "sfu", &text, error)) {
        return false;
    }
    const char *name = given != NULL ? given : (text != NULL ? text : "exact");
    const bool good =
        strcmp(name, "exact") == 0 || strcmp(name, "h200") == 0 ||
        dp_fail(error, "%s:/: sfu '%.32s': exact and h200 are known", dump->path, name);
    *sfu = good ? dp_sfu_choice(name) : NULL;
    free(text);
    return good;
}

static bool read_scale_factor(dp_dump *dump, dp_error *error)
{
    dump->softmax_scale = 1.0 / sqrt((double)dump->dim);
    if (dp_h5_has_attribute(&dump->file, "/", "softmax_scale") &&
        !dp_h5_f64(&dump->file, "/", "softmax_scale", &dump->softmax_scale, error)) {
        return false;
    }
    return (isfinite(dump->softmax_scale) && dump->softmax_scale > 0.0) ||
           dp_fail(error, "%s:/: softmax_scale is %.17g: give a positive number", dump->path,
                   dump->softmax_scale);
}

bool dp_dump_take_launch(dp_dump *dump, const dp_dump_overrides *overrides, dp_error *error)
{
    if (overrides->data_only) {
        return true;
    }
    char *policy_name = NULL, *epoch_name = NULL, *switch_text = NULL, *fields = NULL;
    dp_forward_policy policy;
    dp_switches switches = dp_switches_default();
    dp_epoch epoch = DP_EPOCH_S;
    const dp_sfu *sfu = NULL;
    bool good = read_scale_factor(dump, error) &&
                need_text(dump, "policy", overrides->policy, "--policy", &policy_name, error) &&
                need_text(dump, "epoch", overrides->epoch, "--epoch", &epoch_name, error) &&
                (dp_h5_has_attribute(&dump->file, "/", "switches")
                     ? dp_h5_text(&dump->file, "/", "switches", &switch_text, error)
                     : need_text(dump, "switches", overrides->set != NULL ? "" : NULL,
                                 "--set with at least one switch", &switch_text, error)) &&
                dp_forward_policy_find(policy_name, &policy, error) &&
                find_epoch(dump, epoch_name, &epoch, error) &&
                find_sfu(dump, overrides->sfu, &sfu, error);
    if (good && overrides->policy == NULL &&
        dp_h5_has_attribute(&dump->file, "/", "policy_fields")) {
        good = dp_h5_text(&dump->file, "/", "policy_fields", &fields, error) &&
               apply_lines(dump, "policy_fields", fields, &policy, &switches, &dump->mma, error);
    }
    good = good &&
           apply_lines(dump, "switches", switch_text, &policy, &switches, &dump->mma, error) &&
           dp_apply_settings(overrides->set != NULL ? overrides->set : "", &policy, &switches,
                             &dump->mma, error);
    if (good) {
        dump->launch = dp_direct_p_make(&policy, epoch, &switches, dump->softmax_scale, sfu);
    }
    free(policy_name);
    free(epoch_name);
    free(switch_text);
    free(fields);
    return good;
}
