# bash completion of mcrecv
_ddf_mcrecv() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words= files= i
  COMPREPLY=()
  # "=" is a word of its own to bash: --ttl=4 is three.
  if [[ $word == = ]]; then word=; elif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ ${COMP_WORDS[i]} == -- ]] && before=-- && break
  done
  case $before in
    --) ;;
    --interface) words=$(ls /sys/class/net 2>/dev/null) ;;
    --multicast) words='try require off' ;;
    --repair) words='auto verbs tcp shm udp' ;;
    --transport) words='udp verbs' ;;
    --device) words=$(ls /sys/class/infiniband 2>/dev/null) ;;
    --mtu) words='auto 1500 9000' ;;
    --progress) words='auto always never' ;;
    --config) files=-f ;;
    --output | --state) files=-d ;;
    --exec) files=-c ;;
    --keep | --timeout | --group | --source | --ttl | --traffic-class | --service-level) ;;
    *) [[ $word == -* ]] && words='--output --state --exec --keep --follow --once --timeout
             --group --interface --source --ttl --multicast --repair --transport --device --traffic-class --service-level
             --mtu --doctor
             --json --progress -v --verbose -q --quiet --config --version -h --help' ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  if [[ $files ]]; then
    local IFS=$'\n'
    compopt -o filenames
    COMPREPLY+=($(compgen $files -- "$word"))
  fi
}
complete -F _ddf_mcrecv mcrecv
