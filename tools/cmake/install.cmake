# find_package(ddf) and pkg-config, both relocatable: nothing installed knows the prefix.
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/ddf)
install(TARGETS ddf EXPORT ddf-targets FILE_SET HEADERS)
install(EXPORT ddf-targets NAMESPACE ddf:: DESTINATION ${package_folder})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/ddf-config.cmake.in ${PROJECT_BINARY_DIR}/ddf-config.cmake
  INSTALL_DESTINATION ${package_folder} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ddf-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ddf-config.cmake ${PROJECT_BINARY_DIR}/ddf-config-version.cmake
  DESTINATION ${package_folder})

set(pc_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH prefix_from_pc /${pc_folder} /)
string(REGEX REPLACE "/$" "" prefix_from_pc "${prefix_from_pc}")
get_property(private_libraries GLOBAL PROPERTY DDF_PRIVATE_LIBRARIES)
list(TRANSFORM private_libraries PREPEND -l)
string(JOIN " " private_libraries -pthread ${private_libraries})
configure_file(${CMAKE_CURRENT_LIST_DIR}/ddf.pc.in ${PROJECT_BINARY_DIR}/ddf.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/ddf.pc DESTINATION ${pc_folder})

file(GLOB man_pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.1)
install(FILES ${man_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
file(GLOB format_pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.5)
install(FILES ${format_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man5 COMPONENT tools)

# tools/completion: NAME.bash, _NAME (zsh), NAME.fish
file(GLOB bash CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/completion/*.bash)
file(GLOB zsh CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/completion/_*)
file(GLOB fish CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/completion/*.fish)
foreach(file IN LISTS bash)
  cmake_path(GET file STEM program)
  install(FILES ${file} RENAME ${program} COMPONENT tools
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
endforeach()
install(FILES ${zsh} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT tools)
install(FILES ${fish} DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT tools)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
