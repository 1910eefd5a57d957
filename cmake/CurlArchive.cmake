# libcurl from its archive, which Debian and Ubuntu have beside the shared library in libcurl4-openssl-dev. The shared one
# loads what its other protocols need (Kerberos, LDAP, SASL, RTMP, SSH, and GnuTLS behind them): 24 libraries, 3 MiB
# resident and half of one private and dirty in each process, for what is never spoken here. What the archive asks of
# them pkg/net/libcurl/curl_stubs.c answers. Where it asks for something else, and does not link, the shared library is used.
option(CERTROLL_CURL_ARCHIVE "Link libcurl's archive, without the libraries of protocols that are not spoken" ON)

find_library(CERTROLL_CURL_ARCHIVE_FILE libcurl.a)
find_library(CERTROLL_NGHTTP2 NAMES nghttp2 libnghttp2.so.14)
mark_as_advanced(CERTROLL_CURL_ARCHIVE_FILE CERTROLL_NGHTTP2)
set(CERTROLL_CURL_NEEDS ${CERTROLL_NGHTTP2} OpenSSL::SSL OpenSSL::Crypto PkgConfig::ZLIB Threads::Threads)

function(certroll_try_curl_archive)
  set(stubs ${CMAKE_SOURCE_DIR}/pkg/net/libcurl/curl_stubs.c)
  set(probe ${CMAKE_BINARY_DIR}/curl-archive-probe.c)
  file(WRITE ${probe} "#include <curl/curl.h>\nint main(void) { return curl_easy_init() == NULL; }\n")
  try_compile(CERTROLL_CURL_ARCHIVE_LINKS SOURCES ${probe} ${stubs}
    LINK_LIBRARIES ${CERTROLL_CURL_ARCHIVE_FILE} ${CERTROLL_CURL_NEEDS})
endfunction()

if(CERTROLL_CURL_ARCHIVE AND CERTROLL_CURL_ARCHIVE_FILE AND CERTROLL_NGHTTP2)
  certroll_try_curl_archive()
endif()
if(CERTROLL_CURL_ARCHIVE AND CERTROLL_CURL_ARCHIVE_LINKS)
  add_library(curl_stubs STATIC ${CMAKE_SOURCE_DIR}/pkg/net/libcurl/curl_stubs.c)
  target_link_libraries(curl_stubs PRIVATE certroll_options)
  set_target_properties(PkgConfig::LIBCURL PROPERTIES INTERFACE_LINK_LIBRARIES
    "${CERTROLL_CURL_ARCHIVE_FILE};curl_stubs;${CERTROLL_CURL_NEEDS}")
else()
  message(STATUS "libcurl is linked as the shared library, with those of all its protocols")
endif()
