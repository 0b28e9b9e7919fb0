/* SPDX-License-Identifier: MIT
 *
 * The advice as a file, for a launcher to read: kind "guard" (FILES.md).
 */
#include <stdlib.h>

#include "analysis/guard_report.h"

/* Heads of all layers in one list. */
typedef struct {
    const dp_guard_study *study;
    size_t count;
    int64_t *integers;
    double *reals;
} table;

typedef double real_of(const dp_guard_head *head, int i);
typedef int64_t integer_of(const dp_guard_layer *layer, const dp_guard_head *head, int i);

static bool put_reals(dp_h5_writer *writer, const char *path, const table *t, int width,
                      const char *axes, real_of *of, dp_error *error)
{
    const uint64_t dims[2] = {t->count, (uint64_t)width};
    const dp_h5_labels labels = {.axes = axes};
    size_t at = 0;
    for (size_t l = 0; l < t->study->count; l++) {
        const dp_guard *guard = &t->study->layers[l].guard;
        for (size_t h = 0; h < guard->count; h++) {
            for (int i = 0; i < width; i++) {
                t->reals[at++] = of(&guard->heads[h], i);
            }
        }
    }
    return dp_h5_put(writer, path, DP_H5_F64, width > 1 ? 2 : 1, dims, t->reals, &labels, error);
}

static bool put_integers(dp_h5_writer *writer, const char *path, const table *t, int width,
                         const char *axes, integer_of *of, dp_error *error)
{
    const uint64_t dims[2] = {t->count, (uint64_t)width};
    const dp_h5_labels labels = {.axes = axes};
    size_t at = 0;
    for (size_t l = 0; l < t->study->count; l++) {
        const dp_guard_layer *layer = &t->study->layers[l];
        for (size_t h = 0; h < layer->guard.count; h++) {
            for (int i = 0; i < width; i++) {
                t->integers[at++] = of(layer, &layer->guard.heads[h], i);
            }
        }
    }
    return dp_h5_put(writer, path, DP_H5_I64, width > 1 ? 2 : 1, dims, t->integers, &labels, error);
}

static const dp_guard_pair *pair_of(const dp_guard_head *head)
{
    return &head->scores[dp_guard_is_smooth(head->advice) ? 1 : 0].pair;
}

static double logit_of(const dp_guard_head *head, int i)
{
    return head->scores[i].largest_logit;
}
static double row_of(const dp_guard_head *head, int i)
{
    const dp_guard_scores *s = &head->scores[i / 2];
    return i % 2 == 0 ? s->bottom : s->top;
}
static double miss_of(const dp_guard_head *head, int i)
{
    return head->scores[i].miss;
}
static double above_448(const dp_guard_head *head, int i)
{
    const dp_guard_scores *s = &head->scores[i];
    return s->blocks16 > 0 ? (double)s->above_e4m3 / (double)s->blocks16 : 0.0;
}
static double above_254(const dp_guard_head *head, int i)
{
    const dp_guard_scores *s = &head->scores[i];
    return s->blocks32 > 0 ? (double)s->above_e8m0 / (double)s->blocks32 : 0.0;
}
static double slack_of(const dp_guard_head *head, int i)
{
    const dp_guard_scores *s = &head->scores[dp_guard_is_smooth(head->advice) ? 1 : 0];
    (void)i;
    return s->pair.slack < s->rebase_slack ? s->pair.slack : s->rebase_slack;
}
static double rel_l2_of(const dp_guard_head *head, int i)
{
    return head->effect[i].rel_l2;
}
static double cosine_of(const dp_guard_head *head, int i)
{
    return head->effect[i].cosine;
}

static int64_t layer_of(const dp_guard_layer *layer, const dp_guard_head *head, int i)
{
    (void)head;
    (void)i;
    return layer->layer;
}
static int64_t head_of(const dp_guard_layer *layer, const dp_guard_head *head, int i)
{
    (void)i;
    return (int64_t)(head->batch * layer->q_heads + head->head);
}
static int64_t advice_of(const dp_guard_layer *layer, const dp_guard_head *head, int i)
{
    (void)layer;
    (void)i;
    return head->advice;
}
static int64_t smooth_of(const dp_guard_layer *layer, const dp_guard_head *head, int i)
{
    (void)layer;
    (void)i;
    return dp_guard_is_smooth(head->advice) ? 1 : 0;
}
static int64_t anchored_of(const dp_guard_layer *layer, const dp_guard_head *head, int i)
{
    (void)layer;
    (void)i;
    return dp_guard_is_anchored(head->advice) ? 1 : 0;
}
/* Constants: the base policy's where no anchor is advised. */
static int64_t margin_of(const dp_guard_layer *layer, const dp_guard_head *head, int i)
{
    (void)layer;
    (void)i;
    return dp_guard_is_anchored(head->advice) ? pair_of(head)->margin : 0;
}
static int64_t shift_of(const dp_guard_layer *layer, const dp_guard_head *head, int i)
{
    (void)i;
    return dp_guard_is_anchored(head->advice) ? pair_of(head)->shift : layer->guard.shift;
}
static int64_t nonfinite_of(const dp_guard_layer *layer, const dp_guard_head *head, int i)
{
    (void)layer;
    return (int64_t)head->effect[i].nonfinite_rows;
}
static int64_t zero_of(const dp_guard_layer *layer, const dp_guard_head *head, int i)
{
    (void)layer;
    return (int64_t)head->effect[i].zero_rows;
}

static bool put_heads(dp_h5_writer *w, const table *t, dp_error *error)
{
    static const char one[] = "head";
    static const char given[] = "head,as given smoothed";
    static const char choice[] = "head,choice";
    return put_integers(w, "/head/layer", t, 1, one, layer_of, error) &&
           put_integers(w, "/head/head", t, 1, one, head_of, error) &&
           put_reals(w, "/head/logit", t, 2, given, logit_of, error) &&
           put_reals(w, "/head/row_maxima", t, 4, "head,bottom top, the same smoothed", row_of,
                     error) &&
           put_reals(w, "/head/miss", t, 2, given, miss_of, error) &&
           put_reals(w, "/head/above_448", t, 2, given, above_448, error) &&
           put_reals(w, "/head/above_254", t, 2, given, above_254, error) &&
           put_integers(w, "/head/advice", t, 1, one, advice_of, error) &&
           put_integers(w, "/head/smooth_k", t, 1, one, smooth_of, error) &&
           put_integers(w, "/head/anchored", t, 1, one, anchored_of, error) &&
           put_integers(w, "/head/margin", t, 1, one, margin_of, error) &&
           put_integers(w, "/head/shift", t, 1, one, shift_of, error) &&
           put_reals(w, "/head/slack", t, 1, one, slack_of, error) &&
           put_reals(w, "/head/rel_l2", t, DP_GUARD_CHOICES, choice, rel_l2_of, error) &&
           put_reals(w, "/head/cosine", t, DP_GUARD_CHOICES, choice, cosine_of, error) &&
           put_integers(w, "/head/nonfinite_rows", t, DP_GUARD_CHOICES, choice, nonfinite_of,
                        error) &&
           put_integers(w, "/head/zero_rows", t, DP_GUARD_CHOICES, choice, zero_of, error);
}

static bool put_layers(dp_h5_writer *w, const dp_guard_study *study, dp_error *error)
{
    enum { COLUMNS = 6 };
    static const char *const names[COLUMNS] = {"/layer/together", "/layer/apart",
                                               "/layer/smooth_k", "/layer/anchored",
                                               "/layer/margin",   "/layer/shift"};
    int64_t *values = malloc(study->count * sizeof *values);
    size_t used = 0;
    const size_t size = study->count * 257 + 1;
    char *files = malloc(size);
    bool good = (values != NULL && files != NULL) || dp_fail(error, "guard: not enough memory");
    for (int column = 0; good && column < COLUMNS; column++) {
        for (size_t l = 0; l < study->count; l++) {
            const dp_guard *guard = &study->layers[l].guard;
            const bool smooth = dp_guard_is_smooth(guard->together);
            const bool anchored = dp_guard_is_anchored(guard->together);
            const dp_guard_pair *pair = &guard->pair[smooth ? 1 : 0];
            const int64_t row[COLUMNS] = {guard->together,
                                          guard->apart,
                                          smooth,
                                          anchored,
                                          anchored ? pair->margin : 0,
                                          anchored ? pair->shift : guard->shift};
            values[l] = row[column];
        }
        const uint64_t dims[1] = {study->count};
        const dp_h5_labels labels = {.axes = "layer"};
        good = dp_h5_put(w, names[column], DP_H5_I64, 1, dims, values, &labels, error);
    }
    for (size_t l = 0; good && l < study->count; l++) {
        used += (size_t)snprintf(files + used, size - used, "%s%s", l > 0 ? "\n" : "",
                                 study->layers[l].file);
    }
    good = good && dp_h5_put_text(w, "/layer", "files", files, error);
    free(values);
    free(files);
    return good;
}

bool dp_guard_save(const dp_guard_study *study, const char *path, const char *const *inputs,
                   size_t input_count, dp_error *error)
{
    table t = {.study = study};
    for (size_t l = 0; l < study->count; l++) {
        t.count += study->layers[l].guard.count;
    }
    t.integers = malloc(t.count * DP_GUARD_CHOICES * sizeof *t.integers);
    t.reals = malloc(t.count * DP_GUARD_CHOICES * sizeof *t.reals);
    dp_h5_writer writer;
    bool good =
        ((t.integers != NULL && t.reals != NULL) || dp_fail(error, "guard: not enough memory")) &&
        dp_h5_create(&writer, path, "guard", inputs, input_count, error);
    if (good) {
        char names[256] = "";
        size_t used = 0;
        for (int c = 0; c < DP_GUARD_CHOICES; c++) {
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", c > 0 ? "," : "",
                                     dp_guard_choice_name((dp_guard_choice)c));
        }
        good = put_heads(&writer, &t, error) && put_layers(&writer, study, error) &&
               dp_h5_put_text(&writer, "/", "choices", names, error) &&
               dp_h5_put_text(&writer, "/", "policy", study->policy, error) &&
               dp_h5_put_text(&writer, "/", "settings", study->settings, error) &&
               dp_h5_put_i64(&writer, "/", "anchor", study->anchor, error) &&
               dp_h5_put_f64(&writer, "/", "q_factor", study->q_factor, error) &&
               dp_h5_commit(&writer, error);
        dp_h5_abandon(&writer);
    }
    free(t.integers);
    free(t.reals);
    return good;
}
