# SPDX-License-Identifier: MIT
# Turn text files into byte arrays and a lookup function (run with cmake -P).
set(text "/* SPDX-License-Identifier: MIT */\n/* Made from analysis/gnuplot by embed.cmake. */\n")
string(APPEND text "#include \"analysis/plot.h\"\n\n#include <string.h>\n\n")
set(rows "")
set(count 0)
foreach(script ${SCRIPTS})
  get_filename_component(name ${script} NAME)
  file(READ ${script} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND text "static const unsigned char script_${count}[] = {${bytes}};\n")
  string(APPEND rows "    {\"${name}\", script_${count}, sizeof script_${count}},\n")
  math(EXPR count "${count} + 1")
endforeach()
string(APPEND text "
static const struct {
    const char *name;
    const unsigned char *bytes;
    size_t size;
} scripts[] = {
${rows}};

const unsigned char *dp_plot_script(const char *name, size_t *size)
{
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        if (strcmp(scripts[i].name, name) == 0) {
            *size = scripts[i].size;
            return scripts[i].bytes;
        }
    }
    return NULL;
}
")
file(WRITE ${OUTPUT} "${text}")
