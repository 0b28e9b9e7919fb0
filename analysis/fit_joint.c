/* SPDX-License-Identifier: MIT
 *
 * Branch and bound over boxes of (A, B). Of a box, the strips that cover it and those that touch
 * it bound the count from above; a box that cannot reach the best count is dropped, the others are
 * halved until few strips are undecided. There every crossing of two lines is counted exactly:
 * where the most closed strips meet is a polygon, and a polygon has a corner.
 */
#include "analysis/fit_joint.h"

#include <math.h>
#include <stdlib.h>

enum {
    UNIT_BITS = 30, /* box corners are multiples of 2^-30 */
    LEAF = 8,       /* undecided strips whose crossings are counted one by one */
    KEPT = 256,     /* corners of best polygons kept */
    MISSES = 1000,  /* polygons too narrow for f32 after which no more are tried */
    SLACK = 8,      /* units by which a list reaches further than its box */
    NEAR = 4        /* and crossings of a box are looked for */
};

const double dp_fit_plane_low[2] = {-1.0, 0.0625};
const double dp_fit_plane_high[2] = {3.0, 4.0};

typedef struct {
    int64_t a0, a1, b0, b1;
} box;

typedef struct {
    const dp_fit_sample *sample;
    const uint32_t *weight;
    double low[2], high[2]; /* of the whole box */
    const dp_fit_strip *strips;
    size_t strip_count;
    uint32_t *arena; /* lists of strips, one behind the other */
    size_t used, room;
    int64_t best; /* codes at the best point yet: of f32 numbers, or a crossing */
    bool all;     /* keep boxes that can only equal the best */
    bool failed;
    size_t boxes;
    box whole;
    dp_fit_crossing corner[KEPT];
    size_t corners;
    int64_t edge;   /* bound left over at the rim of the whole box */
    dp_fit_map rim; /* the best pair of f32 numbers seen there, and its codes */
    int64_t rim_count;
    int misses;          /* polygons without a f32 pair, in the search for pairs */
    dp_fit_joint *joint; /* not NULL: look for f32 pairs only, into this */
} tree;

static int by_x(const void *a, const void *b)
{
    const dp_fit_strip *s = a;
    const dp_fit_strip *t = b;
    return (s->x > t->x) - (s->x < t->x);
}

/* The strips of a weighted sample, scores of one x joined. */
static dp_fit_strip *strips_of(const dp_fit_sample *sample, const uint32_t *weight, size_t *count)
{
    dp_fit_strip *strips = malloc((sample->count + 1) * sizeof *strips);
    size_t n = 0;
    for (size_t i = 0; strips != NULL && i < sample->count; i++) {
        const uint32_t w = weight != NULL ? weight[sample->group[i]] : 1;
        if (w > 0) {
            strips[n].x = (int32_t)(sample->x[i] * 0x1p22);
            strips[n].weight = (int32_t)w;
            dp_fit_interval(sample->ideal[i], &strips[n].low, &strips[n].high);
            n++;
        }
    }
    if (strips == NULL) {
        return NULL;
    }
    qsort(strips, n, sizeof *strips, by_x);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && strips[kept - 1].x == strips[i].x) {
            strips[kept - 1].weight += strips[i].weight;
        } else {
            strips[kept++] = strips[i];
        }
    }
    *count = kept;
    return strips;
}

typedef struct {
    size_t first, count; /* of the arena: strips that touch the box without covering it */
    int64_t inside;      /* codes of the strips that cover it */
    int64_t bound;
    box at;
} node;

/* A x + B over the box, in 2^-52, against a midpoint of m quarters, m 2^50. */
static void classify(const dp_fit_strip *s, box at, bool *touches, bool *covers)
{
    const int64_t x = s->x;
    const int64_t least = (x >= 0 ? at.a0 : at.a1) * x + at.b0 * ((int64_t)1 << 22);
    const int64_t most = (x >= 0 ? at.a1 : at.a0) * x + at.b1 * ((int64_t)1 << 22);
    const int64_t low = s->low == -DP_FIT_OPEN ? INT64_MIN : s->low * ((int64_t)1 << 50);
    const int64_t high = s->high == DP_FIT_OPEN ? INT64_MAX : s->high * ((int64_t)1 << 50);
    *touches = most >= low && least <= high;
    *covers = least >= low && most <= high;
}

static bool reserve(tree *t, size_t more)
{
    if (t->used + more > t->room) {
        const size_t room = 2 * (t->used + more);
        uint32_t *arena = realloc(t->arena, room * sizeof *arena);
        if (arena == NULL) {
            t->failed = true;
            return false;
        }
        t->arena = arena;
        t->room = room;
    }
    return true;
}

/* The node of a box inside `parent`, its list at the end of the arena. All is judged on a box a few
 * units larger, so that crossings may be placed in binary64. */
static node make(tree *t, const node *parent, box at)
{
    node made = {.first = t->used, .inside = parent->inside, .at = at};
    t->boxes++;
    if (!reserve(t, parent->count)) {
        return made;
    }
    made.bound = parent->inside;
    const box wide = {at.a0 - SLACK, at.a1 + SLACK, at.b0 - SLACK, at.b1 + SLACK};
    for (size_t i = 0; i < parent->count; i++) {
        const uint32_t index = t->arena[parent->first + i];
        const dp_fit_strip *s = &t->strips[index];
        bool touches, covers;
        classify(s, wide, &touches, &covers);
        made.bound += touches ? s->weight : 0;
        made.inside += covers ? s->weight : 0;
        if (touches && !covers) {
            t->arena[t->used++] = index;
            made.count++;
        }
    }
    return made;
}

static bool at_rim(const tree *t, box at)
{
    return at.a0 == t->whole.a0 || at.a1 == t->whole.a1 || at.b0 == t->whole.b0 ||
           at.b1 == t->whole.b1;
}

static bool near(dp_fit_crossing at, box b)
{
    const double a = dp_fit_crossing_a(at) * 0x1p30;
    const double y = dp_fit_crossing_b(at) * 0x1p30;
    return a >= (double)(b.a0 - NEAR) && a <= (double)(b.a1 + NEAR) && y >= (double)(b.b0 - NEAR) &&
           y <= (double)(b.b1 + NEAR);
}

/* A pair of f32 numbers in a polygon, if there is one: the middle, or columns of A. */
static bool pair_inside(const dp_fit_sample *sample, const uint32_t *weight,
                        const dp_fit_cell *cell, int64_t count, dp_fit_map *map)
{
    enum { COLUMNS = 32 };
    double middle[2] = {0.0, 0.0};
    for (int i = 0; i < cell->vertices; i++) {
        middle[0] += cell->b[i] / cell->vertices;
        middle[1] += cell->a[i] / cell->vertices;
    }
    *map = dp_fit_map_of(1, middle);
    if (dp_fit_count(sample, weight, map) == count) {
        return true;
    }
    for (int i = 1; i < COLUMNS; i++) {
        const double a = (double)(float)(cell->a_low + (cell->a_high - cell->a_low) * i / COLUMNS);
        double low = INFINITY, high = -INFINITY;
        for (int k = 0; k < cell->vertices; k++) {
            const int next = (k + 1) % cell->vertices;
            const double t = (a - cell->a[k]) / (cell->a[next] - cell->a[k]);
            if (t >= 0.0 && t <= 1.0) {
                const double b = cell->b[k] + t * (cell->b[next] - cell->b[k]);
                low = fmin(low, b);
                high = fmax(high, b);
            }
        }
        const double c[2] = {0.5 * (low + high), a};
        *map = dp_fit_map_of(1, c);
        if (low < high && dp_fit_count(sample, weight, map) == count) {
            return true;
        }
    }
    return false;
}

static void offer(tree *t, dp_fit_crossing at, int64_t count)
{
    if (t->joint != NULL) { /* only what f32 numbers can reach */
        dp_fit_cell cell;
        dp_fit_map map;
        if (count > t->best) {
            dp_fit_cell_at(t->strips, t->strip_count, t->low, t->high, at, &cell);
            if (pair_inside(t->sample, t->weight, &cell, count, &map)) {
                t->best = t->joint->count = count;
                t->joint->map = map;
                t->joint->cell = cell;
            } else {
                t->misses++;
            }
        }
        return;
    }
    if (count > t->best) {
        t->best = count;
        t->corners = 0;
    }
    if (count == t->best && t->corners < KEPT) {
        t->corner[t->corners++] = at;
    }
}

/* All crossings of lines in the box, and some of those next to it, which are counted right too. */
static void count_crossings(tree *t, const node *leaf)
{
    for (size_t i = 0; i < leaf->count; i++) {
        for (size_t j = i + 1; j < leaf->count; j++) {
            const dp_fit_strip *s = &t->strips[t->arena[leaf->first + i]];
            const dp_fit_strip *u = &t->strips[t->arena[leaf->first + j]];
            for (int ends = 0; ends < 4; ends++) {
                const int m = ends & 1 ? s->high : s->low;
                const int k = ends & 2 ? u->high : u->low;
                if (abs(m) == DP_FIT_OPEN || abs(k) == DP_FIT_OPEN) {
                    continue;
                }
                const dp_fit_crossing at = dp_fit_cross(s->x, m, u->x, k);
                if (!near(at, leaf->at)) {
                    continue;
                }
                int64_t count = leaf->inside;
                for (size_t l = 0; l < leaf->count; l++) {
                    const dp_fit_strip *v = &t->strips[t->arena[leaf->first + l]];
                    count += dp_fit_strip_holds(v, at) ? v->weight : 0;
                }
                offer(t, at, count);
            }
        }
    }
}

static bool hopeless(const tree *t, int64_t bound)
{
    return t->misses > MISSES || (t->all ? bound < t->best : bound <= t->best);
}

/* A best polygon may leave the whole box before it has a corner: at the rim the bound of the last
 * boxes stands, and their middle is a candidate. */
static void finish_leaf(tree *t, const node *n)
{
    count_crossings(t, n);
    if (at_rim(t, n->at)) {
        const double middle[2] = {0x1p-31 * (double)(n->at.b0 + n->at.b1),
                                  0x1p-31 * (double)(n->at.a0 + n->at.a1)};
        const dp_fit_map map = dp_fit_map_of(1, middle);
        const int64_t count =
            n->bound > t->rim_count ? dp_fit_count(t->sample, t->weight, &map) : 0;
        t->edge = n->bound > t->edge ? n->bound : t->edge;
        if (count > t->rim_count) {
            t->rim_count = count;
            t->rim = map;
        }
    }
}

static void descend(tree *t, const node *n)
{
    const int64_t width = n->at.a1 - n->at.a0;
    const int64_t height = n->at.b1 - n->at.b0;
    if (t->failed || hopeless(t, n->bound)) {
        return;
    }
    const bool few = n->count <= LEAF && (n->count == 0 || !at_rim(t, n->at));
    if (few || (width <= 1 && height <= 1)) {
        finish_leaf(t, n);
        return;
    }
    box half[2] = {n->at, n->at};
    if (width >= height) {
        half[0].a1 = half[1].a0 = n->at.a0 + width / 2;
    } else {
        half[0].b1 = half[1].b0 = n->at.b0 + height / 2;
    }
    const size_t mark = t->used;
    node child[2] = {make(t, n, half[0]), make(t, n, half[1])};
    const int first = child[1].bound > child[0].bound; /* the likelier one: raises the best early */
    descend(t, &child[first]);
    descend(t, &child[!first]);
    t->used = mark;
}

/* Whether a corner belongs to a polygon already found. */
static bool is_corner_of(const dp_fit_cell *cell, dp_fit_crossing at)
{
    const double a = dp_fit_crossing_a(at);
    const double b = dp_fit_crossing_b(at);
    for (int i = 0; i < cell->vertices; i++) {
        if (fabs(cell->a[i] - a) < 1e-13 && fabs(cell->b[i] - b) < 1e-13) {
            return true;
        }
    }
    return false;
}

/* The polygons of the best corners; the largest that holds a pair of f32 numbers gives the map. */
static void take_best(const tree *t, dp_fit_joint *joint)
{
    dp_fit_cell found[KEPT];
    size_t cells = 0;
    for (size_t i = 0; i < t->corners; i++) {
        bool known = false;
        for (size_t k = 0; k < cells && !known; k++) {
            known = is_corner_of(&found[k], t->corner[i]);
        }
        if (!known) {
            dp_fit_cell_at(t->strips, t->strip_count, t->low, t->high, t->corner[i], &found[cells]);
            cells += found[cells].area > 1e-24;
        }
    }
    joint->cells = cells;
    joint->bound = t->best > t->edge ? t->best : t->edge;
    for (size_t left = cells; left > 0; left--) {
        size_t largest = 0;
        for (size_t k = 1; k < left; k++) {
            largest = found[k].area > found[largest].area ? k : largest;
        }
        if (pair_inside(t->sample, t->weight, &found[largest], t->best, &joint->map)) {
            joint->count = t->best;
            joint->cell = found[largest];
            return;
        }
        found[largest] = found[left - 1];
    }
}

static box box_of(const double *low, const double *high)
{
    const double unit = 0x1p10;
    const int64_t up = (int64_t)1 << (UNIT_BITS - 10);
    const box whole = {(int64_t)floor(low[1] * unit) * up, (int64_t)ceil(high[1] * unit) * up,
                       (int64_t)floor(low[0] * unit) * up, (int64_t)ceil(high[0] * unit) * up};
    return whole;
}

/* From the whole box down. */
static void run(tree *t)
{
    for (size_t i = 0; i < t->strip_count; i++) {
        t->arena[i] = (uint32_t)i;
    }
    t->used = t->strip_count;
    const node everything = {.count = t->strip_count};
    const node root = make(t, &everything, t->whole);
    descend(t, &root);
}

bool dp_fit_joint_find(const dp_fit_sample *sample, const uint32_t *weight, const double *low,
                       const double *high, const dp_fit_map *start, dp_fit_joint *joint,
                       dp_error *error)
{
    memset(joint, 0, sizeof *joint);
    if (!(low[1] >= 0x1p-6)) {
        return dp_fail(error, "fit: slope %g: the proof needs slopes of 1/64 and more", low[1]);
    }
    tree t = {
        .sample = sample, .weight = weight, .all = weight == NULL, .whole = box_of(low, high)};
    dp_fit_strip *strips = strips_of(sample, weight, &t.strip_count);
    t.strips = strips;
    t.low[0] = 0x1p-30 * (double)t.whole.b0;
    t.low[1] = 0x1p-30 * (double)t.whole.a0;
    t.high[0] = 0x1p-30 * (double)t.whole.b1;
    t.high[1] = 0x1p-30 * (double)t.whole.a1;
    t.failed = strips == NULL || !reserve(&t, t.strip_count + 1);
    joint->map = *start;
    if (!t.failed) {
        joint->count = t.best = t.rim_count = dp_fit_count(sample, weight, start);
        run(&t);
    }
    if (!t.failed) {
        take_best(&t, joint);
        if (t.rim_count > joint->count) {
            joint->count = t.rim_count;
            joint->map = t.rim;
        }
        if (joint->count < joint->bound) { /* the best polygons lie between the f32 numbers */
            t.joint = joint;
            t.all = false;
            t.best = joint->count;
            run(&t);
        }
        if (joint->cell.vertices == 0) {
            dp_fit_cell_around(sample, t.low, t.high, &joint->map, &joint->cell);
        }
    }
    joint->boxes = t.boxes;
    free(t.arena);
    free(strips);
    return !t.failed || dp_fail(error,
                                "fit: not enough memory for the proof of %zu scores: use "
                                "fewer rows",
                                sample->count);
}
