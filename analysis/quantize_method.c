/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "analysis/numbers.h"
#include "analysis/quantize.h"
#include "formats/catalog.h"

/* Option texts in the order of the enumerations they name. */
#define RULES     "amax|floor|ceil|rceil|even|round|round-log2|floor-ratio|amplitude|best-l2"
#define ROUNDINGS "rne|rz|ru|rd|rs|ties-zero|ties-away"
#define OVERFLOWS "unspecified|satfinite|nonsat|ieee754"
#define NANS      "ptx|signed|mldtypes|zero|error"

static bool choose(const char *option, const char *choices, const char *text, int *index,
                   dp_error *error)
{
    *index = text != NULL ? dp_choice_index(choices, text) : -1;
    return text == NULL || *index >= 0 ||
           dp_fail(error, "--%s: '%.32s' is not a choice: give one of %s", option, text, choices);
}

/* Rounding and overflow of the payload; together they must leave nothing unspecified. */
static bool set_encode(const dp_quantize_options *o, dp_encode *encode, dp_error *error)
{
    int rounding;
    int overflow;
    if (!choose("rounding", ROUNDINGS, o->rounding, &rounding, error) ||
        !choose("overflow", OVERFLOWS, o->overflow, &overflow, error)) {
        return false;
    }
    if (rounding >= 0) {
        encode->round = (dp_round)rounding;
        encode->overflow = DP_OVERFLOW_UNSPECIFIED;
    }
    if (overflow >= 0) {
        encode->overflow = (dp_overflow)overflow;
    }
    if (encode->round == DP_RS) {
        return dp_fail(error, "--rounding: rs needs random bits for every element: use the library "
                              "(formats/minifloat.h)");
    }
    return dp_encode_valid(*encode) ||
           dp_fail(error,
                   "--rounding: what %s does beyond the largest value is unspecified: give "
                   "--overflow satfinite, nonsat or ieee754",
                   o->rounding);
}

static bool set_direct(const dp_quantize_options *o, dp_quantize_method *m, dp_error *error)
{
    int nan;
    int via;
    if (o->recipe != NULL || o->rule != NULL || o->block != 0) {
        return dp_fail(error, "--format: %s has no scales: leave out --recipe, --rule and --block",
                       o->format);
    }
    m->direct = true;
    m->encode = DP_ENCODE_PTX;
    (void)snprintf(m->name, sizeof m->name, "%s", o->format);
    if (!set_encode(o, &m->encode, error) || !choose("nan", NANS, o->nan, &nan, error) ||
        !choose("via", "f16|bf16", o->via, &via, error)) {
        return false;
    }
    m->refuse_nan = nan == 4;
    m->encode.nan = nan >= 0 && nan < 4 ? (dp_nan_rule)nan : DP_NAN_PTX;
    m->via = via < 0 ? DP_VIA_NONE : via == 0 ? DP_VIA_FP16 : DP_VIA_BF16;
    return true;
}

/* Names of the recipes for a format, "TE TORCHAO ...". */
static void list_recipes(const char *format, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < dp_preset_count() && used < size; i++) {
        const dp_preset p = dp_preset_at(i);
        if (strcmp(p.format, format) == 0 && !p.fold64) {
            used += (size_t)snprintf(text + used, size - used, " %s", p.preset);
        }
    }
}

/* The preset that format, recipe and rule choose. */
static bool find_preset(const dp_quantize_options *o, const char *format, dp_preset *preset,
                        dp_error *error)
{
    char name[96];
    char known[512];
    const char *recipe = o->recipe;
    if (recipe == NULL && strcmp(format, "nvfp4") == 0) {
        list_recipes(format, known, sizeof known);
        return dp_fail(error,
                       "--format: stacks disagree about the scales of nvfp4: name a recipe with "
                       "--recipe, one of flat%s; --explain prints its formulas",
                       known);
    }
    if (recipe == NULL) {
        const bool kernel = o->rule != NULL && strcmp(o->rule, "amplitude") == 0;
        recipe = kernel ? "DIRECTP-V" : "OCP";
    }
    if (strcmp(recipe, "flat") == 0) {
        recipe = "PTX"; /* amax/6 in E4M3 and no global scale */
    }
    (void)snprintf(name, sizeof name, strchr(recipe, ':') != NULL ? "%.64s" : "%.64s:%.24s", recipe,
                   format);
    dp_error ignored = {""};
    if (!dp_preset_find(name, preset, &ignored)) {
        list_recipes(format, known, sizeof known);
        return dp_fail(error, "--recipe: there is no '%.64s' for %s: give one of%s", recipe, format,
                       known);
    }
    return true;
}

static bool set_recipe(const dp_quantize_options *o, const char *format, dp_quantize_method *m,
                       dp_error *error)
{
    int rule;
    if (!choose("rule", RULES, o->rule, &rule, error) ||
        !find_preset(o, format, &m->preset, error)) {
        return false;
    }
    dp_block_recipe *recipe = &m->preset.recipe;
    (void)snprintf(m->name, sizeof m->name, "%s:%s", m->preset.preset, m->preset.format);
    if (rule >= 0 && (dp_scale_rule)rule != recipe->rule) {
        if (recipe->scale != DP_SCALE_E8M0 || rule == DP_RULE_AMAX || rule == DP_RULE_AMPLITUDE ||
            recipe->rule == DP_RULE_AMPLITUDE) {
            return dp_fail(error,
                           "--rule: %s does not go with the scales of %s: leave it out or "
                           "choose another recipe",
                           o->rule, m->name);
        }
        recipe->rule = (dp_scale_rule)rule;
    }
    if (o->nan != NULL || o->via != NULL) {
        return dp_fail(error, "--%s: it is for formats without scales: the recipe says it here",
                       o->nan != NULL ? "nan" : "via");
    }
    if (o->block != 0) {
        recipe->block = (size_t)o->block;
    }
    m->element = recipe->element;
    if (m->preset.fold64 &&
        (o->block != 0 || o->rule != NULL || o->rounding != NULL || o->overflow != NULL)) {
        return dp_fail(error, "--format: nvfp4-k64 is one fixed recipe: leave out --block, --rule, "
                              "--rounding and --overflow");
    }
    return (o->rounding == NULL && o->overflow == NULL) || set_encode(o, &recipe->payload, error);
}

bool dp_quantize_method_of(const dp_quantize_options *o, dp_quantize_method *m, dp_error *error)
{
    char known[400] = "";
    memset(m, 0, sizeof *m);
    if (dp_catalog_find(o->format, &m->element)) {
        return set_direct(o, m, error);
    }
    if (strcmp(o->format, "nvfp4-k64") == 0) {
        dp_quantize_options folded = *o;
        folded.recipe = "DIRECTP-QK-FOLD:nvfp4";
        return (o->recipe == NULL ||
                dp_fail(error, "--recipe: nvfp4-k64 is one fixed recipe: leave it out")) &&
               set_recipe(&folded, "nvfp4", m, error);
    }
    const char *format = strcmp(o->format, "mxfp8") == 0 ? "mxfp8-e4m3" : o->format;
    size_t used = 0;
    for (size_t i = 0; i < dp_preset_count(); i++) {
        const char *name = dp_preset_at(i).format;
        if (strcmp(name, format) == 0) {
            return set_recipe(o, format, m, error);
        }
        if (strstr(known, name) == NULL && used < sizeof known) {
            used += (size_t)snprintf(known + used, sizeof known - used, " %s", name);
        }
    }
    return dp_fail(error,
                   "--format: there is no '%.64s': give a format of directp table --help, "
                   "nvfp4-k64, or one of%s",
                   o->format, known);
}

void dp_quantize_explain(const dp_quantize_method *m)
{
    static const char *const roundings[] = {"nearest, ties to even",
                                            "toward zero",
                                            "toward +infinity",
                                            "toward -infinity",
                                            "stochastic",
                                            "nearest, ties toward zero",
                                            "nearest, ties away from zero"};
    static const char *const overflows[] = {"largest finite code", "largest finite code",
                                            "Inf, else NaN", "as IEEE 754 7.4"};
    char text[4096];
    if (m->direct) {
        printf("%s: direct conversion from f32, one rounding, no scales\n"
               "rounding   %s\noverflow   %s\n",
               m->name, roundings[m->encode.round], overflows[m->encode.overflow]);
        return;
    }
    (void)dp_preset_explain(&m->preset, text, sizeof text);
    printf("%s", text);
}
