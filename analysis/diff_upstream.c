/* SPDX-License-Identifier: MIT
 *
 * Diagnosis across stages that were not dumped: where the first wrong dataset is explained by no
 * mistake of its own, the mistakes of the bridged datasets before it are carried on to it. A
 * mistake that acts in several stages (a launch with another constant, a head map of K and of V)
 * is tried in each alone and in all that share its name.
 */
#include <stdio.h>
#include <stdlib.h>

#include "analysis/hypothesis.h"

enum { STRIPS = 3, MEMBERS = DP_DUMP_DATASETS };

/* What is tried: at most one hypothesis a dataset. */
typedef struct {
    const dp_hypothesis *member[MEMBERS];
    const dp_hypothesis *first; /* names it */
    bool launch_throughout;     /* later stages run under the changed launch too */
    bool all_tiles;             /* causal: no key tile is skipped                */
    bool dead;
    uint64_t left;
} candidate;

typedef struct {
    candidate *list;
    size_t count, room;
} candidates;

static candidate *push(candidates *c)
{
    if (c->count == c->room) {
        const size_t room = c->room > 0 ? 2 * c->room : 256;
        candidate *list = realloc(c->list, room * sizeof *list);
        if (list == NULL) {
            return NULL;
        }
        c->list = list;
        c->room = room;
    }
    candidate *fresh = &c->list[c->count++];
    memset(fresh, 0, sizeof *fresh);
    return fresh;
}

static bool is_bridged(const dp_dump *dump, dp_dump_id id, dp_dump_id wrong)
{
    return id < wrong && !dump->present[id];
}

/* All that share the name of number i, of datasets up to `last`; first is NULL where they are not
 * several, or i is not the first of them. */
static candidate group_of(const candidates *c, size_t singles, size_t i, dp_dump_id last)
{
    const dp_hypothesis *h = c->list[i].first;
    candidate group = {.first = h};
    int members = 0;
    for (size_t j = 0; j < singles; j++) {
        const dp_hypothesis *other = c->list[j].first;
        if (other->id > last || strcmp(other->name, h->name) != 0) {
            continue;
        }
        if (j < i) {
            return (candidate){.first = NULL};
        }
        members += group.member[other->id] == NULL;
        group.member[other->id] = group.member[other->id] == NULL ? other : group.member[other->id];
    }
    group.first = members > 1 ? h : NULL;
    return group;
}

/* Every single mistake of a bridged dataset, and every name that several of them share. */
static bool gather(const dp_dump *dump, dp_dump_id wrong, candidates *c)
{
    for (size_t i = 0; dp_hypothesis_at(i) != NULL; i++) {
        const dp_hypothesis *h = dp_hypothesis_at(i);
        if (!is_bridged(dump, h->id, wrong)) {
            continue;
        }
        const bool masked = h->id == DP_DUMP_RAW && dump->causal;
        for (int variant = 0; variant < (h->change != NULL || masked ? 2 : 1); variant++) {
            candidate *one = push(c);
            if (one == NULL) {
                return false;
            }
            one->member[h->id] = one->first = h;
            one->launch_throughout = h->change != NULL && variant != 0;
            one->all_tiles = masked && variant != 0;
        }
    }
    const size_t singles = c->count;
    static const dp_dump_id lasts[] = {DP_DUMP_V_SCALE, DP_DUMP_LSE}; /* operands alone, and all */
    for (size_t i = 0; i < 2 * singles; i++) {
        const candidate group = group_of(c, singles, i / 2, lasts[i % 2]);
        candidate *slot = group.first == NULL ? NULL : push(c);
        if (slot != NULL) {
            *slot = group;
        }
    }
    return true;
}

/* ---- one candidate on one strip ----------------------------------------------------------------
 */

typedef struct {
    void *in[DP_DUMP_DATASETS], *out[DP_DUMP_DATASETS];
} kept_strip;

static bool keep_strip(const dp_unit *unit, dp_dump_id last, kept_strip *k)
{
    bool good = true;
    for (int d = 0; d <= (int)last; d++) {
        const size_t bytes = dp_unit_bytes(unit, (dp_dump_id)d);
        k->in[d] = malloc(bytes);
        k->out[d] = malloc(bytes);
        good = good && k->in[d] != NULL && k->out[d] != NULL;
        if (good) {
            memcpy(k->in[d], unit->in.data[d], bytes);
            memcpy(k->out[d], unit->out.data[d], bytes);
        }
    }
    return good;
}

static void restore_strip(dp_unit *unit, dp_dump_id last, const kept_strip *k)
{
    for (int d = 0; d <= (int)last; d++) {
        const size_t bytes = dp_unit_bytes(unit, (dp_dump_id)d);
        memcpy(unit->in.data[d], k->in[d], bytes);
        memcpy(unit->out.data[d], k->out[d], bytes);
    }
}

static void free_strip(kept_strip *k)
{
    for (int d = 0; d < DP_DUMP_DATASETS; d++) {
        free(k->in[d]);
        free(k->out[d]);
    }
}

/* The stages from the first changed one to `wrong`, whose data end in unit->out. */
static bool carry_on(dp_unit *unit, const candidate *c, dp_dump_id wrong, void *scratch)
{
    dp_direct_p launch = unit->launch;
    bool changed = false;
    if (c->launch_throughout) {
        c->first->change(&launch, c->first->argument);
    }
    for (int d = 0; d <= (int)wrong; d++) {
        const dp_dump_id id = (dp_dump_id)d;
        const dp_hypothesis *h = c->member[d];
        if (changed && id > DP_DUMP_V_SCALE && (!unit->dumped.valid[d] || id == wrong)) {
            if (!dp_stage_ready(unit, id) ||
                !dp_stage_run(unit, &launch, &unit->mma, id, unit->out.data[d], NULL)) {
                return false;
            }
            if (id != wrong) {
                memcpy(unit->in.data[d], unit->out.data[d], dp_unit_bytes(unit, id));
            }
        }
        if (h != NULL) {
            if (!unit->out.valid[d] || !dp_hypothesis_run(h, unit, scratch)) {
                return false;
            }
            memcpy(unit->out.data[d], scratch, dp_unit_bytes(unit, id));
            memcpy(unit->in.data[d], scratch, dp_unit_bytes(unit, id));
            changed = true;
        }
    }
    return changed;
}

static size_t largest(const dp_unit *unit)
{
    size_t most = 0;
    for (int d = 0; d < DP_DUMP_DATASETS; d++) {
        const size_t bytes = dp_unit_bytes(unit, (dp_dump_id)d);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void try_all(const dp_diff_job *job, dp_unit *unit, dp_dump_id wrong, uint64_t mismatches,
                    const kept_strip *kept, candidates *c, void *scratch)
{
    for (size_t i = 0; i < c->count; i++) {
        candidate *one = &c->list[i];
        if (one->dead) {
            continue;
        }
        const size_t visited = unit->visited;
        unit->visited = one->all_tiles ? unit->dump->key_rows / DP_TILE : visited;
        one->dead = !carry_on(unit, one, wrong, scratch);
        unit->visited = visited;
        if (!one->dead) {
            one->left += dp_diff_count(unit, &job->rules, wrong, unit->out.data[wrong]);
            one->dead = one->left * 50 > mismatches;
        }
        restore_strip(unit, wrong, kept);
    }
}

static bool name_the_best(const candidates *c, dp_dump_id wrong, uint64_t before,
                          dp_diff_result *result)
{
    for (size_t i = 0; i < c->count; i++) {
        const candidate *one = &c->list[i];
        if (!one->dead && one->left * 50 <= before) {
            dp_diff_finding f = {one->first->name, one->first->meaning, before, one->left, ""};
            size_t used = (size_t)snprintf(f.detail, sizeof f.detail, "in what was not dumped:");
            for (int d = 0; d < (int)wrong; d++) {
                if (one->member[d] != NULL && used + 16 < sizeof f.detail) {
                    used += (size_t)snprintf(f.detail + used, sizeof f.detail - used, " %s",
                                             dp_dump_datasets[d].name);
                }
            }
            dp_diff_keep(result, &f);
        }
    }
    return true;
}

bool dp_diff_upstream(const dp_diff_job *job, dp_unit *unit, dp_diff_result *result,
                      dp_error *error)
{
    const dp_dump_id wrong = (dp_dump_id)result->first_wrong;
    const dp_diff_dataset *set = &result->set[wrong];
    candidates c = {NULL, 0, 0};
    void *scratch = malloc(largest(unit));
    bool good = (gather(job->dump, wrong, &c) && scratch != NULL) ||
                dp_fail(error, "diagnosis: not enough memory");
    uint64_t before = 0;
    for (size_t i = 0; good && c.count > 0 && i < set->kept_count && i < STRIPS; i++) {
        kept_strip kept = {{NULL}, {NULL}};
        good = dp_unit_load(unit, set->kept[i], error) &&
               (keep_strip(unit, wrong, &kept) || dp_fail(error, "diagnosis: not enough memory"));
        if (good) {
            before += dp_diff_count(unit, &job->rules, wrong, unit->out.data[wrong]);
            try_all(job, unit, wrong, set->mismatches, &kept, &c, scratch);
        }
        free_strip(&kept);
    }
    result->tried += c.count;
    good = good && name_the_best(&c, wrong, before, result);
    free(scratch);
    free(c.list);
    return good;
}
