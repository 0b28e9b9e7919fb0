/* SPDX-License-Identifier: MIT
 *
 * The published operator errors (data/published/operator.csv) from their seed: every row, within
 * the tolerance it names (5e-6 of each figure). The
 * shortest shape by default; the others with the argument "slow".
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/attend.h"
#include "support.h"

enum { SEED = 20260814, DIM = 128, MOST = 64 };

static bool slow;

typedef struct {
    char table[16], name[64];
    int sms, seq, heads;
    double cosine, rel_l2, rmse, tolerance;
} row;

static int read_rows(row rows[MOST])
{
    char path[512], line[256];
    FILE *file = fopen(dp_source_path(path, sizeof path, "data/published/operator.csv"), "r");
    ck_assert_msg(file != NULL, "%s: cannot be read", path);
    int count = 0;
    ck_assert_ptr_nonnull(fgets(line, sizeof line, file)); /* the heading */
    while (fgets(line, sizeof line, file) != NULL && count < MOST) {
        row *r = &rows[count++];
        const int fields =
            sscanf(line, "%15[^,],%d,%d,%d,%63[^,],%lf,%lf,%lf,%lf", r->table, &r->sms, &r->seq,
                   &r->heads, r->name, &r->cosine, &r->rel_l2, &r->rmse, &r->tolerance);
        ck_assert_msg(fields == 9, "line %d: %s", count + 1, line);
    }
    (void)fclose(file);
    return count;
}

typedef struct {
    dp_attend_inputs inputs;
    uint16_t *o, *reference;
    float *lse;
} problem;

static void make(problem *p, const row *r)
{
    dp_error error = {""};
    const dp_attend_transform plain = {.q_factor = 1.0};
    ck_assert_msg(dp_attend_random(SEED, r->sms, 1, (size_t)r->seq, (size_t)r->heads,
                                   (size_t)r->heads, DIM, 0, &plain, &p->inputs, &error),
                  "%s", error.text);
    const size_t rows = (size_t)r->seq * (size_t)r->heads;
    p->o = malloc(rows * DIM * sizeof *p->o);
    p->reference = malloc(rows * DIM * sizeof *p->reference);
    p->lse = malloc(rows * sizeof *p->lse);
    ck_assert(p->o != NULL && p->reference != NULL && p->lse != NULL);
    ck_assert_msg(dp_reference_bf16(&p->inputs.in, 0, p->reference, NULL, &error), "%s",
                  error.text);
}

static void discard(problem *p)
{
    dp_attend_inputs_free(&p->inputs);
    free(p->o);
    free(p->reference);
    free(p->lse);
}

/* "fast density=1": a policy, then fields of it to change. False when it is no policy. */
static bool find_policy(const char *text, dp_forward_policy *policy)
{
    char copy[64], *rest = NULL;
    dp_error error = {""};
    (void)snprintf(copy, sizeof copy, "%s", text);
    if (!dp_forward_policy_find(strtok_r(copy, " ", &rest), policy, NULL)) {
        return false;
    }
    for (char *field; (field = strtok_r(NULL, " ", &rest)) != NULL;) {
        ck_assert_msg(dp_forward_policy_set(policy, field, &error), "%s", error.text);
    }
    return true;
}

static dp_attend_metrics measure(problem *p, const char *name)
{
    dp_error error = {""};
    dp_forward_policy policy;
    const dp_attention *in = &p->inputs.in;
    bool good;
    if (find_policy(name, &policy)) {
        const dp_switches switches = dp_switches_default();
        const dp_direct_p launch =
            dp_direct_p_make(&policy, DP_EPOCH_S, &switches, dp_attention_scale(in), NULL);
        const dp_attend_run_options options = {.inputs = &p->inputs, .launch = &launch};
        good = dp_attend_run(&options, p->o, p->lse, &error);
    } else {
        dp_route route;
        good = dp_route_find(name, &route, &error) &&
               dp_route_run(in, &route, NULL, dp_sfu_exact(), 0, p->o, p->lse, NULL, &error);
    }
    ck_assert_msg(good, "%s: %s", name, error.text);
    return dp_attend_compare(p->o, p->reference, in->q_heads * in->queries, DIM);
}

START_TEST(operator_errors)
{
    static row rows[MOST];
    const int count = read_rows(rows);
    ck_assert_int_ge(count, 17);
    dp_tally tally = {0};
    problem p = {0};
    const row *made = NULL;
    for (int i = 0; i < count; i++) {
        const row *r = &rows[i];
        if ((r->seq > 256) != slow) {
            continue;
        }
        if (made == NULL || made->seq != r->seq || made->heads != r->heads || made->sms != r->sms) {
            discard(&p);
            make(&p, r);
            made = r;
        }
        const dp_attend_metrics m = measure(&p, r->name);
        const bool same = fabs(m.cosine - r->cosine) <= r->tolerance &&
                          fabs(m.rel_l2 - r->rel_l2) <= r->tolerance &&
                          fabs(m.rmse - r->rmse) <= r->tolerance && m.nonfinite_rows == 0;
        if (!dp_tally_check(&tally, same)) {
            dp_tally_note(&tally, "%s S%d H%d %s: %.10f %.10f %.10f, printed %.10f %.10f %.10f",
                          r->table, r->seq, r->heads, r->name, m.cosine, m.rel_l2, m.rmse,
                          r->cosine, r->rel_l2, r->rmse);
        }
    }
    discard(&p);
    dp_assert_tally(tally, 7);
}
END_TEST

/* The printed RMS of the BF16 output, 0.1020476073: inputs and yardstick without any operator. */
START_TEST(reference_rms)
{
    const row shape = {.sms = 152, .seq = 256, .heads = 16};
    problem p;
    make(&p, &shape);
    double sum = 0.0;
    const size_t n = (size_t)256 * 16 * DIM;
    for (size_t i = 0; i < n; i++) {
        const double x = (double)dp_f32_from_bits((uint32_t)p.reference[i] << 16);
        sum += x * x;
    }
    const double rms = sqrt(sum / (double)n);
    ck_assert_msg(fabs(rms - 0.1020476073) <= 2e-8, "%.10f", rms);
    discard(&p);
}
END_TEST

int main(int argc, char **argv)
{
    slow = argc > 1 && strcmp(argv[1], "slow") == 0;
    Suite *suite = suite_create("published");
    TCase *tests = tcase_create("published");
    tcase_add_test(tests, operator_errors);
    tcase_add_test(tests, reference_rms);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
