import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [
    { name: 'one', port: 9001 },
    { name: 'two', port: 9002 },
  ],
  commands: [
    {
      title: 'after two checks, the first endpoint receives all requests',
      command: 'sleep 3; for i in $(seq 20); do curl -s http://localhost:8080/ | grep -o \'"name":"[a-z]*"\'; done | sort -u',
      prints: /^"name":"one"\n$/,
    },
  ],
} satisfies Example
