file(READ ${IN} hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR bytes "${digits} / 2")
# Character literals, so that bytes above 0x7f fit char without a conversion; lines of 16 (CMake allows few groups).
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," body "${hex}")
string(REPEAT "'[^,]*," 16 line)
string(REGEX REPLACE "(${line})" "\\1\n" body "${body}")
file(WRITE ${OUT} "#include <stddef.h>\n\nextern const char ${SYMBOL}[];\nextern const size_t ${SYMBOL}_len;\n\nconst char ${SYMBOL}[] = {\n${body}'\\0'};\nconst size_t ${SYMBOL}_len = ${bytes};\n")
