import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [
    { name: 'one', port: 9001 },
    { name: 'two', port: 9002 },
  ],
  commands: [
    {
      title: 'both endpoints receive requests',
      command: 'for i in $(seq 50); do curl -s http://localhost:8080/ | grep -o \'"name":"[a-z]*"\'; done | sort -u | wc -l',
      prints: /^ *2\n$/,
    },
  ],
} satisfies Example
