# certroll_library(<folder of pkg/> [USES <lower library>...] [THIRD <imported target>...])
function(certroll_library name)
  cmake_parse_arguments(ARG "" "" "USES;THIRD" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/pkg/${name}/*.c)
  if(NOT sources)
    return()
  endif()
  add_library(certroll_${name} STATIC ${sources})
  target_include_directories(certroll_${name} PUBLIC ${CMAKE_SOURCE_DIR}/pkg)
  target_link_libraries(certroll_${name} PRIVATE certroll_options)
  foreach(lower IN LISTS ARG_USES)
    target_link_libraries(certroll_${name} PUBLIC certroll_${lower})
  endforeach()
  # Third-party headers stay inside of the one layer that wraps them.
  target_link_libraries(certroll_${name} PRIVATE ${ARG_THIRD})
endfunction()

# certroll_embed(<target> <file> <symbol>): the file's bytes as a const array `symbol` with `symbol_len`.
function(certroll_embed target file symbol)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.c)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DIN=${file} -DOUT=${out} -DSYMBOL=${symbol} -P ${CMAKE_SOURCE_DIR}/cmake/Embed.cmake
    DEPENDS ${file} ${CMAKE_SOURCE_DIR}/cmake/Embed.cmake VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()
