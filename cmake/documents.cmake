# The documents are installed as they lie here, with the examples that they speak of, so that their links and paths hold.
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents)
install(DIRECTORY docs examples experiments packaging DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents
  USE_SOURCE_PERMISSIONS PATTERN __pycache__ EXCLUDE PATTERN valgrind.supp EXCLUDE)
install(DIRECTORY tests/scripts DESTINATION ${CMAKE_INSTALL_DOCDIR}/tests COMPONENT documents PATTERN CMakeLists.txt EXCLUDE)
install(FILES tests/e2e/congestion/ecn.toml DESTINATION ${CMAKE_INSTALL_DOCDIR}/tests/e2e/congestion COMPONENT documents)
install(FILES tests/misuse/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/tests/misuse COMPONENT documents)
