# certroll_library(<folder of pkg/> [USES <lower library>...] [THIRD <imported target>...])
function(certroll_library name)
  cmake_parse_arguments(ARG "" "" "USES;THIRD" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/pkg/${name}/*.c)
  if(NOT sources)
    return()
  endif()
  string(REPLACE "/" "_" target certroll_${name})
  add_library(${target} STATIC ${sources})
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/pkg)
  target_link_libraries(${target} PRIVATE certroll_options)
  foreach(lower IN LISTS ARG_USES)
    string(REPLACE "/" "_" lower certroll_${lower})
    target_link_libraries(${target} PUBLIC ${lower})
  endforeach()
  # Third-party headers stay inside of the one layer that wraps them.
  target_link_libraries(${target} PRIVATE ${ARG_THIRD})
endfunction()

# certroll_embed(<target> <file> <symbol>): the file's bytes as a const array `symbol` with `symbol_len`.
function(certroll_embed target file symbol)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.c)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DIN=${file} -DOUT=${out} -DSYMBOL=${symbol} -P ${CMAKE_SOURCE_DIR}/cmake/Embed.cmake
    DEPENDS ${file} ${CMAKE_SOURCE_DIR}/cmake/Embed.cmake VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()

# certroll_embed_folder(<target> <folder> <symbol>): its *.yaml in the order of their names, as a table `symbol` of
# {name, text, &length} with `symbol_len` entries; `type` and header as the target declares them.
function(certroll_embed_folder target folder symbol type header)
  file(GLOB files CONFIGURE_DEPENDS ${folder}/*.yaml)
  list(SORT files)
  set(declarations "")
  set(rows "")
  foreach(file IN LISTS files)
    cmake_path(GET file STEM stem)
    string(MAKE_C_IDENTIFIER ${stem} stem)
    cmake_path(GET file FILENAME name)
    certroll_embed(${target} ${file} ${symbol}_${stem})
    string(APPEND declarations "extern const char ${symbol}_${stem}[];\nextern const size_t ${symbol}_${stem}_len;\n")
    string(APPEND rows "    {\"${name}\", ${symbol}_${stem}, &${symbol}_${stem}_len},\n")
  endforeach()
  list(LENGTH files count)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.c)
  file(CONFIGURE OUTPUT ${out} CONTENT
    "#include \"${header}\"\n\n${declarations}\nconst ${type} ${symbol}[] = {\n${rows}};\nconst size_t ${symbol}_len = ${count};\n")
  target_sources(${target} PRIVATE ${out})
endfunction()
