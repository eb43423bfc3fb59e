import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [
    { name: 'stable', port: 9001 },
    { name: 'canary', port: 9002 },
  ],
  commands: [
    {
      title: 'count twenty requests: about eighteen reach stable',
      command: 'for i in $(seq 20); do curl -s http://localhost:8080/ | grep -o \'"name":"[a-z]*"\'; done | sort | uniq -c',
      prints: /"name":"stable"/,
    },
    { title: 'a tester', command: "curl -s -H 'x-canary: always' http://localhost:8080/", prints: /"name":"canary"/ },
  ],
} satisfies Example
