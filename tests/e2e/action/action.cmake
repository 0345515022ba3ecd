# The action of workflows, by a release that is made of this build.
set(action_release ${CMAKE_CURRENT_BINARY_DIR}/action)
rocemu_e2e_test(action/release 240 ${here}/action/release.sh ${CMAKE_BINARY_DIR} ${action_release})
set_tests_properties(e2e/action/release PROPERTIES FIXTURES_SETUP action_release)
foreach(case confined root sudo findings command download workflow snippets refusals)
  rocemu_e2e_test(action/${case} 300 /usr/bin/python3 ${here}/action/steps.py ${case} ${action_release} $<TARGET_FILE:leaver>)
  set_tests_properties(e2e/action/${case} PROPERTIES FIXTURES_REQUIRED action_release)
endforeach()
meet_at(port-18515 action/workflow)
