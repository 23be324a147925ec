# Run by ctest as it starts: one entry "e2e.<file>" for each end-to-end script. A script that cannot run here prints
# why ("SKIP: ...") and exits 77. "# timeout: SECONDS" among its first lines replaces the default of 180.
file(GLOB scripts ${folder_path}/*.py ${folder_path}/../lab/test_*.py)
foreach(script IN LISTS scripts)
  get_filename_component(stem ${script} NAME_WE)
  if(stem MATCHES "^_")
    continue()
  endif()
  set(timeout 180)
  file(STRINGS ${script} lines REGEX "^# timeout: [0-9]+" LIMIT_COUNT 1)
  if(lines MATCHES "([0-9]+)")
    set(timeout ${CMAKE_MATCH_1})
  endif()
  math(EXPR timeout "${timeout} * ${slowdown}")
  add_test(e2e.${stem} ${python} ${script})
  set_tests_properties(e2e.${stem} PROPERTIES LABELS e2e TIMEOUT ${timeout} RUN_SERIAL TRUE SKIP_RETURN_CODE 77
    WORKING_DIRECTORY ${folder_path} ENVIRONMENT "DDF_BIN=${programs};PYTHONDONTWRITEBYTECODE=1;PYTHONUNBUFFERED=1")
endforeach()
