# Programs over bad links.
foreach(loss 0.1 1 5 10)
  rocemu_e2e_test(impaired/loss-${loss} 240 ${here}/impairments/impaired.sh loss=${loss}%)
  rocemu_e2e_test(impaired/loss-${loss}-dup-reorder 240 ${here}/impairments/impaired.sh
                  loss=${loss}%,dup=1%,reorder=1%)
endforeach()
rocemu_e2e_test(impaired/corrupt 240 ${here}/impairments/impaired.sh corrupt=1%)
rocemu_e2e_test(impaired/delay-jitter-rate 240 ${here}/impairments/impaired.sh
                delay=20us,jitter=20us,rate=5gbit,queue=10mb)
rocemu_e2e_test(impaired/everything 240 ${here}/impairments/impaired.sh
                loss=1%,dup=1%,reorder=1%,corrupt=0.5%,delay=20us,jitter=5us,rate=10gbit,outage=1ms/500ms)
# 16 connections of four processes share a path that is slower than they are.
rocemu_e2e_test(impaired/shared-path 60 ${rocemu} run --impair rate=2gbit,queue=100kb,delay=50us --
                $<TARGET_FILE:shared_path> -t 4 --least 1000 --fair 0.9)
use_both_cores(impaired/shared-path)
rocemu_e2e_test(impaired/link-lost 120 ${here}/impairments/link_lost.py)

# ICRCs that are owed where nobody sees them, and not where a link is impaired; and paid everywhere.
rocemu_e2e_test(icrc/changing-link 120 ${rocemu} run -- ${here}/impairments/owed_icrc.sh $<TARGET_FILE:verify_bytes>
                -d rocemu0 -D rocemu1 --messages 2000 --budget-mib 64)
set(icrc_always ${rocemu} run --config ${here}/configs/icrc_always.toml)
rocemu_e2e_test(icrc/always-verify_bytes 120 ${icrc_always} -- $<TARGET_FILE:verify_bytes>
                -d rocemu0 -D rocemu1 --messages 1000 --budget-mib 64)
rocemu_e2e_test(icrc/always-verbs 60 ${icrc_always} -- $<TARGET_FILE:verbs> -d rocemu0 -D rocemu1)
use_both_cores(icrc/changing-link)

# The same with selective repeat.
foreach(spec loss=1% loss=5%,dup=1%,reorder=1% loss=1%,corrupt=0.5%,delay=20us,jitter=5us)
  string(REGEX REPLACE "[%=,.]+" "-" name ${spec})
  rocemu_e2e_test(impaired/selective-${name} 240 env RECOVERY=selective-repeat
                  ${here}/impairments/impaired.sh ${spec} ib_write_bw ib_read_bw ib_send_bw)
endforeach()

# Every byte, at loss alone and at everything together.
set(few_messages --messages 200 --max-size 65536 --budget-mib 4)
rocemu_e2e_test(impaired/verify_bytes-loss 240 ${rocemu} run --impair loss=1% --
                $<TARGET_FILE:verify_bytes> -d rocemu0 -D rocemu1 ${few_messages})
rocemu_e2e_test(impaired/verify_bytes-everything 240
                ${rocemu} run --impair loss=2%,dup=2%,reorder=2%,corrupt=1%,delay=10us,jitter=10us,seed=3 --
                $<TARGET_FILE:verify_bytes> -d rocemu0 -D rocemu1 ${few_messages})
rocemu_e2e_test(impaired/verify_bytes-selective 240
                ${rocemu} run --recovery selective-repeat
                --impair loss=2%,dup=2%,reorder=2%,corrupt=1%,delay=10us,jitter=10us,seed=3 --
                $<TARGET_FILE:verify_bytes> -d rocemu0 -D rocemu1 ${few_messages})
