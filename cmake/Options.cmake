include(CheckCCompilerFlag)

# For options that only newer compilers have.
function(certroll_option_if_known flag)
  string(MAKE_C_IDENTIFIER "HAVE${flag}" variable)
  check_c_compiler_flag(${flag} ${variable})
  if(${variable})
    target_compile_options(certroll_options INTERFACE ${flag})
  endif()
endfunction()

option(CERTROLL_TESTS "Build the unit tests" ON)
option(CERTROLL_FUZZ "Build the libFuzzer targets (needs clang)" OFF)
option(CERTROLL_WERROR "Treat warnings as errors" ON)
set(CERTROLL_SANITIZE "" CACHE STRING "Sanitizers to build with, for example address,undefined")
option(CERTROLL_HARDEN "Compile and link options of the OpenSSF hardening guide" OFF)

add_library(certroll_options INTERFACE)
target_compile_definitions(certroll_options INTERFACE _GNU_SOURCE CERTROLL_VERSION="${PROJECT_VERSION}"
  CERTROLL_ARCH="$<IF:$<STREQUAL:${CMAKE_SYSTEM_PROCESSOR},x86_64>,amd64,$<IF:$<STREQUAL:${CMAKE_SYSTEM_PROCESSOR},aarch64>,arm64,${CMAKE_SYSTEM_PROCESSOR}>>")
target_compile_options(certroll_options INTERFACE
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition
  -Wpointer-arith -Wcast-qual -Wwrite-strings -Wundef -Wvla -Wformat=2 -Wformat-security
  -Wimplicit-fallthrough -Wnull-dereference -Wconversion -Wno-sign-conversion
  # Statement expressions and cleanup attributes are the GNU extensions this code stands on;
  # designated initializers leave the rest zero on purpose.
  -Wno-missing-field-initializers
  # Cutting text to its field is what snprintf is used for here; clang has no such warning.
  $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation>)
# Sources are named from the top of the checkout, which is where a debugger is to be started: so the same source gives the
# same object in every checkout, and ccache (hack/build) has it.
target_compile_options(certroll_options INTERFACE -fdebug-prefix-map=${CMAKE_SOURCE_DIR}=.)
if(CERTROLL_WERROR)
  target_compile_options(certroll_options INTERFACE -Werror)
endif()

if(CERTROLL_SANITIZE)
  target_compile_options(certroll_options INTERFACE -fsanitize=${CERTROLL_SANITIZE}
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(certroll_options INTERFACE -fsanitize=${CERTROLL_SANITIZE})
endif()

# https://best.openssf.org/Compiler-Hardening-Guides/Compiler-Options-Hardening-Guide-for-C-and-C++
if(CERTROLL_HARDEN)
  target_compile_options(certroll_options INTERFACE
    -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-clash-protection -fstack-protector-strong
    -fno-delete-null-pointer-checks -fno-strict-overflow -fno-strict-aliasing
    -ftrivial-auto-var-init=zero -fexceptions -fPIE
    -Werror=implicit -Werror=incompatible-pointer-types -Werror=int-conversion)
  foreach(flag -Wtrampolines -Wbidi-chars=any -fstrict-flex-arrays=3 -fzero-init-padding-bits=all)
    certroll_option_if_known(${flag})
  endforeach()
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    target_compile_options(certroll_options INTERFACE -fcf-protection=full)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64")
    target_compile_options(certroll_options INTERFACE -mbranch-protection=standard)
  endif()
  # -pie would undo the -static-pie of a program that is linked statically.
  target_link_options(certroll_options INTERFACE $<$<NOT:$<BOOL:$<TARGET_PROPERTY:CERTROLL_STATIC>>>:-pie>
    LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack LINKER:-z,nodlopen
    LINKER:--as-needed LINKER:--no-copy-dt-needed-entries)
endif()
