# ROCEMU_DPDK: DPDK's archives, with the drivers that docs/ports.md has. Drivers register themselves, so they are kept
# whole; of the libraries only what is called comes in.
pkg_get_variable(dpdk_folder libdpdk libdir)
set(drivers mempool_stack mempool_ring bus_vdev bus_pci
  net_af_packet net_e1000 net_memif net_ring net_tap net_virtio net_vmxnet3)
set(libraries bpf cmdline cryptodev eal ethdev gso hash ip_frag kvargs lpm mbuf mempool meter metrics net pci rcu ring
  security stack telemetry timer vhost)
if(dpdk_log)
  list(APPEND libraries log)
endif()
list(TRANSFORM drivers REPLACE "(.+)" "${dpdk_folder}/librte_\\1.a" OUTPUT_VARIABLE driver_archives)
list(TRANSFORM libraries REPLACE "(.+)" "${dpdk_folder}/librte_\\1.a" OUTPUT_VARIABLE library_archives)
list(JOIN driver_archives "," driver_archives)
list(JOIN library_archives "," library_archives)
set(ROCEMU_DPDK
  "-Wl,--whole-archive,${driver_archives},--no-whole-archive,--start-group,${library_archives},--end-group"
  ${dpdk_folder}/libnuma.a ${dpdk_folder}/libbsd.a ${dpdk_folder}/libmd.a)
