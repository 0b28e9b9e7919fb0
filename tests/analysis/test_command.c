/* SPDX-License-Identifier: MIT
 *
 * The command as a user runs it: help, bad usage, exit statuses, full disks; and the parts under it
 * that need no file: option tables, numbers, JSON, reports.
 */
#include <check.h>
#include <math.h>

#include "analysis/options.h"
#include "analysis/report.h"
#include "scratch.h"

START_TEST(help_and_version)
{
    static dp_run run;
    run_directp(&run, "--version");
    ck_assert_int_eq(run.status, 0);
    ck_assert(strncmp(run.out, "directp ", 8) == 0 && run.err[0] == '\0');
    run_directp(&run, "--help");
    ck_assert_int_eq(run.status, 0);
    ck_assert(strstr(run.out, "Exit status:") != NULL);
    /* Every verb explains itself and says what its exit statuses mean. */
    for (const dp_verb *verb = dp_verbs; verb->name != NULL; verb++) {
        char arguments[64];
        ck_assert_msg(strstr(run.out, verb->name) != NULL, "%s is not listed", verb->name);
        static dp_run help;
        (void)snprintf(arguments, sizeof arguments, "%s --help", verb->name);
        run_directp(&help, arguments);
        ck_assert_msg(help.status == 0 && help.err[0] == '\0', "%s: %s", verb->name, help.err);
        ck_assert_msg(strstr(help.out, "Usage: directp ") == help.out, "%s", verb->name);
        ck_assert_msg(strstr(help.out, "Example:\n") != NULL, "%s", verb->name);
        ck_assert_msg(strstr(help.out, "Exit status: 0 ") != NULL, "%s", verb->name);
        ck_assert_msg(strstr(help.out, "(default )") == NULL, "%s", verb->name);
        for (const char *line = strstr(help.out, "Example:\n") + 9; line[0] != '\n';
             line = strchr(line, '\n') + 1) {
            ck_assert_msg(strncmp(line, "  directp ", 10) == 0, "%s: %s", verb->name, line);
        }
        ck_assert_msg(strstr(help.out, " \n") == NULL, "%s: blanks at a line's end", verb->name);
    }
}
END_TEST

START_TEST(bad_usage)
{
    assert_refused("", "no verb given");
    assert_refused("tabel e2m1", "there is no verb 'tabel'");
    assert_refused("table", "FORMAT is missing");
    assert_refused("table e2m1 e4m3", "'e4m3' is one argument too many");
    assert_refused("table e9m9", "there is no format 'e9m9'");
    assert_refused("table e2m1 --colour", "there is no option --colour");
    assert_refused("table e2m1 -x", "there is no option -x");
    assert_refused("table e2m1 --json=yes", "takes no value");
    assert_refused("table e2m1 --json --csv", "choose one");
    assert_refused("quantize --format nvfp4 --recipe te --explain --json", "prints text");
    assert_refused("attend --random 1 --set nonsense=1", " clear-zero ");
    assert_refused("attend --random 1 --set nonsense=1", " multiplier ");
    assert_refused("bench memory --threads", "its value is missing");
    assert_refused("bench memory --threads two", "'two' is not a whole number");
    assert_refused("bench memory --threads 2x", "'2x' is not a whole number");
    assert_refused("bench memory --threads=-1", "'-1' is not in range");
    assert_refused("bench memory --threads 99999999999999999999", "not in range");
    assert_refused("bench memory --seconds nan", "give a number from 0 to 3600");
    assert_refused("bench memory --seconds ' 1'", "give a number from 0 to 3600");
    assert_refused("bench memory --se 1e999", "give a number from 0 to 3600");
    assert_refused("bench nothing", "there is no benchmark 'nothing'");
    assert_refused("table \"$(printf 'a\\nb')\"", "'a?b'");
}
END_TEST

START_TEST(full_disk)
{
    static dp_run run;
    if (access("/dev/full", W_OK) != 0) {
        return;
    }
    run_directp_into(&run, "table e4m3", "/dev/full");
    ck_assert_int_eq(run.status, 2);
    ck_assert(strstr(run.err, "standard output: cannot write") != NULL);
}
END_TEST

/* ---- Options ---- */

typedef struct {
    bool flag, given;
    int64_t number;
    double real;
    const char *text, *choice;
} parsed;

static int parse(parsed *p, int *argc, char **argv)
{
    const dp_option options[] = {DP_FLAG("flag", &p->flag, "flag"),
                                 DP_INT("number", &p->number, -5, 100, "number"),
                                 DP_REAL("real", &p->real, -1, 1, "real"),
                                 DP_OUTPUT(&p->text, "output"),
                                 DP_CHOICE("choice", &p->choice, "one|two", "choice"),
                                 {.name = "nothing",
                                  .type = DP_OPTION_FLAG,
                                  .value = &p->flag,
                                  .help = "",
                                  .given = &p->given}};
    const dp_usage usage = {.verb = "test",
                            .operands = "FILE",
                            .summary = "",
                            .example = "",
                            .least = 0,
                            .most = 2,
                            .options = options,
                            .count = sizeof options / sizeof options[0]};
    return dp_options_parse(&usage, argc, argv);
}

START_TEST(option_forms)
{
    parsed p = {0};
    char *argv[] = {(char *)"test",      (char *)"a",     (char *)"--number=0x10", (char *)"--re",
                    (char *)"-0.5",      (char *)"-oout", (char *)"--choice",      (char *)"two",
                    (char *)"--nothing", (char *)"--",    (char *)"--flag"};
    int argc = sizeof argv / sizeof argv[0];
    ck_assert_int_eq(parse(&p, &argc, argv), DP_CONTINUE);
    ck_assert_int_eq(argc, 3);
    ck_assert_str_eq(argv[1], "a");
    ck_assert_str_eq(argv[2], "--flag");
    ck_assert(p.number == 16 && p.real == -0.5 && p.flag && p.given);
    ck_assert_str_eq(p.text, "out");
    ck_assert_str_eq(p.choice, "two");
    /* "--n" may mean two options. */
    char *ambiguous[] = {(char *)"test", (char *)"--n", (char *)"1"};
    argc = 3;
    ck_assert_int_eq(parse(&p, &argc, ambiguous), DP_EXIT_ERROR);
}
END_TEST

START_TEST(numbers)
{
    dp_error error = {""};
    int64_t list[4];
    double reals[4];
    size_t count = 0;
    ck_assert(dp_parse_i64_list("x", "1,2,0x3", 0, 9, list, 4, &count, &error));
    ck_assert(count == 3 && list[2] == 3);
    ck_assert(dp_parse_f64_list("x", "0x1p-3,1e-2", 0, 9, reals, 4, &count, &error));
    ck_assert(count == 2 && reals[0] == 0.125);
    const char *const wrong[] = {"", ",", "1,", "1,,2", "1 ,2", "1,2,3,4,5", "1;2", "10"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(!dp_parse_i64_list("x", wrong[i], 0, 9, list, 4, &count, &error), "'%s'",
                      wrong[i]);
    }
    int64_t edge = 0;
    ck_assert(dp_parse_i64("x", "-9223372036854775808", INT64_MIN, INT64_MAX, &edge, &error));
    ck_assert(edge == INT64_MIN);
    ck_assert(!dp_parse_i64("x", "9223372036854775808", INT64_MIN, INT64_MAX, &edge, &error));
    ck_assert_int_eq(dp_choice_index("one|two|three", "three"), 2);
    ck_assert_int_eq(dp_choice_index("one|two|three", "tw"), -1);
    ck_assert_int_eq(dp_choice_index("one|two|three", ""), -1);
}
END_TEST

/* ---- JSON and reports ---- */

START_TEST(case_110_json_keeps_bits)
{
    char text[1024];
    FILE *out = fopen(scratch("x.json"), "wb");
    dp_json json;
    dp_json_start(&json, out);
    dp_json_array_line(&json);
    dp_json_f32(&json, dp_f32_from_bits(0x3F800001u));
    dp_json_f32(&json, 16777218.0f);
    dp_json_f32(&json, -0.0f);
    dp_json_f32(&json, dp_f32_from_bits(1u));
    dp_json_f64(&json, 0.1);
    dp_json_f64(&json, -0.0);
    dp_json_f64(&json, (double)NAN);
    dp_json_f32(&json, -INFINITY);
    dp_json_bits(&json, 0x7E, 2);
    dp_json_close(&json);
    dp_json_finish(&json);
    (void)fclose(out);
    ck_assert_str_eq(scratch_text(scratch("x.json"), text, sizeof text),
                     "[1.00000012, 16777218, -0, 1.40129846e-45, 0.10000000000000001, -0, "
                     "\"NaN\", \"-Infinity\", \"0x7E\"]\n");
    /* Nine digits bring every f32 back: all exponents, some mantissas. */
    dp_tally tally = {0};
    dp_rng rng = {20261129};
    for (int i = 0; i < 200000; i++) {
        const uint32_t bits = dp_rng_u32(&rng);
        char number[32];
        if ((bits & DP_F32_ABS) >= DP_F32_INF) {
            continue;
        }
        const float back = strtof(dp_f32_text(dp_f32_from_bits(bits), number), NULL);
        if (!dp_tally_check(&tally, dp_f32_bits(back) == bits)) {
            dp_tally_note(&tally, "0x%08X printed %s", bits, number);
        }
    }
    dp_assert_tally(tally, 190000);
}
END_TEST

START_TEST(json_strings)
{
    char text[1024];
    FILE *out = fopen(scratch("x.json"), "wb");
    dp_json json;
    dp_json_start(&json, out);
    dp_json_object_line(&json);
    dp_json_member_text(&json, "a\"b", "tab\t nl\n \x01 \\ caf\xC3\xA9 \xF0\x9F\x98\x80");
    dp_json_member_text(&json, "bad", "\xFF|\xC0\xAF|\xED\xA0\x80|\xC3");
    dp_json_key(&json, "empty");
    dp_json_array(&json);
    dp_json_close(&json);
    dp_json_close(&json);
    dp_json_finish(&json);
    (void)fclose(out);
    ck_assert_str_eq(scratch_text(scratch("x.json"), text, sizeof text),
                     "{\"a\\\"b\": \"tab\\t nl\\n \\u0001 \\\\ caf\xC3\xA9 \xF0\x9F\x98\x80\", "
                     "\"bad\": \"\\ufffd|\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd|\\ufffd\", "
                     "\"empty\": []}\n");
}
END_TEST

START_TEST(report_styles)
{
    static const dp_column columns[] = {{"name", NULL, -1}, {"count", "n", -1}, {"x", NULL, 2}};
    const char *const expected[] = {"title\nname  n     x\na,\"b  1  0.50\nc            \n",
                                    "{\n  \"title\": \"title\",\n  \"rows\": [\n"
                                    "    {\"name\": \"a,\\\"b\", \"count\": 1, \"x\": 0.5},\n"
                                    "    {\"name\": \"c\", \"count\": null, \"x\": null}\n  ]\n}\n",
                                    "name,count,x\r\n\"a,\"\"b\",1,0.5\r\nc,,\r\n"};
    dp_report *report = dp_report_new("title", columns, 3);
    dp_report_text(report, "a,\"b");
    dp_report_i64(report, 1);
    dp_report_f64(report, 0.5);
    dp_report_text(report, "c");
    dp_report_blank(report);
    dp_error error = {""};
    ck_assert(!dp_report_print(report, DP_STYLE_CSV, stdout, &error)); /* a row is incomplete */
    dp_report_blank(report);
    ck_assert_uint_eq(dp_report_rows(report), 2);
    for (int style = 0; style < 3; style++) {
        char text[1024];
        FILE *out = fopen(scratch("report"), "wb");
        ck_assert(dp_report_print(report, (dp_style)style, out, &error));
        (void)fclose(out);
        ck_assert_str_eq(scratch_text(scratch("report"), text, sizeof text), expected[style]);
    }
    dp_report_free(report);
}
END_TEST

/* ---- table ---- */

/* The CSV row of a code, cut into cells. */
static void table_row(const char *format, unsigned code, char cells[10][40])
{
    static dp_run run;
    static char done[16];
    char arguments[64];
    if (strcmp(done, format) != 0) {
        (void)snprintf(arguments, sizeof arguments, "table %s --csv", format);
        run_directp(&run, arguments);
        ck_assert_int_eq(run.status, 0);
        (void)snprintf(done, sizeof done, "%s", format);
    }
    const char *at = run.out;
    for (unsigned line = 0; line <= code; line++) {
        at = strstr(at, "\r\n") + 2;
    }
    for (int i = 0; i < 10; i++) {
        const size_t length = strcspn(at, ",\r");
        (void)snprintf(cells[i], 40, "%.*s", (int)length, at);
        at += length + 1;
    }
}

START_TEST(tables_are_the_arbiter)
{
    static const struct {
        const char *format;
        unsigned code;
        const char *value, *midpoint, *tie;
    } rows[] = {
        /* cases 1 and 8: E2M1 values and all seven ties */
        {"e2m1", 0, "0", "0.25", "0x0"},
        {"e2m1", 1, "0.5", "0.75", "0x2"},
        {"e2m1", 2, "1", "1.25", "0x2"},
        {"e2m1", 3, "1.5", "1.75", "0x4"},
        {"e2m1", 4, "2", "2.5", "0x4"},
        {"e2m1", 5, "3", "3.5", "0x6"},
        {"e2m1", 6, "4", "5", "0x6"},
        {"e2m1", 7, "6", "7", "0x7"},
        {"e2m1", 8, "-0", "-0.25", "0x8"},
        /* case 11: E4M3 subnormals */
        {"e4m3", 1, "0.001953125", "0.0029296875", "0x02"},
        {"e4m3", 7, "0.013671875", "0.0146484375", "0x08"},
        {"e4m3", 0x81, "-0.001953125", "-0.0029296875", "0x82"},
        /* case 9: the threshold is 464 */
        {"e4m3", 0x7E, "448", "464", "0x7E"},
        {"e4m3", 0x7F, "NaN", "", ""},
        {"e5m2", 0x7C, "Infinity", "", ""},
        {"e5m2", 0x48, "8", "9", "0x48"}, /* case 15 */
        /* cases 30 and 32: E8M0 code 0 is 2^-127, ties go to the even code */
        {"e8m0", 0, "5.87747175e-39", "8.8162076311671563e-39", "0x00"},
        {"e8m0", 128, "2", "3", "0x80"},
        {"e8m0", 126, "0.5", "0.75", "0x7E"},
        {"e8m0", 127, "1", "1.5", "0x80"},
        {"e8m0", 129, "4", "6", "0x82"},
        {"e8m0", 255, "NaN", "", ""},
        /* case 18: FNUZ is half of FN, 0x80 is its NaN */
        {"e4m3fnuz", 0x7E, "224", "232", "0x7E"},
        {"e4m3fnuz", 0x80, "NaN", "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char cells[10][40];
        table_row(rows[i].format, rows[i].code, cells);
        ck_assert_msg(strtoul(cells[0], NULL, 16) == rows[i].code, "%s", cells[0]);
        ck_assert_msg(strcmp(cells[2], rows[i].value) == 0 &&
                          strcmp(cells[6], rows[i].midpoint) == 0 &&
                          strcmp(cells[8], rows[i].tie) == 0,
                      "%s 0x%X: value %s midpoint %s tie %s", rows[i].format, rows[i].code,
                      cells[2], cells[6], cells[8]);
    }
}
END_TEST

START_TEST(every_format_prints)
{
    static const char *const formats[] = {"e2m1",     "e2m3",     "e3m2",  "E4M3",      "ue4m3",
                                          "e5m2",     "ue5m3",    "e8m0",  "fp16",      "bf16",
                                          "e4m3fnuz", "e5m2fnuz", "UE8M0", "fp16 --all"};
    static const char *const styles[] = {"", "--json", "--csv"};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        for (size_t j = 0; j < 3; j++) {
            static dp_run run;
            char arguments[64];
            (void)snprintf(arguments, sizeof arguments, "table %s %s", formats[i], styles[j]);
            run_directp(&run, arguments);
            ck_assert_msg(run.status == 0 && run.err[0] == '\0', "%s: %s", arguments, run.err);
            ck_assert(run.out[0] != '\0');
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("command");
    TCase *cases = tcase_create("command");
    tcase_add_test(cases, help_and_version);
    tcase_add_test(cases, bad_usage);
    tcase_add_test(cases, full_disk);
    tcase_add_test(cases, option_forms);
    tcase_add_test(cases, numbers);
    tcase_add_test(cases, case_110_json_keeps_bits);
    tcase_add_test(cases, json_strings);
    tcase_add_test(cases, report_styles);
    tcase_add_test(cases, tables_are_the_arbiter);
    tcase_add_test(cases, every_format_prints);
    suite_add_tcase(suite, cases);
    const int status = dp_run_suite(suite);
    scratch_remove();
    return status;
}
