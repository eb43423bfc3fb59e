import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [
    { name: 'old', port: 9001 },
    { name: 'new', port: 9002 },
  ],
  commands: [
    {
      title: 'some requests are transformed',
      command: `for i in $(seq 50); do curl -s -d '{"a":1}' http://localhost:8080/items | grep -o '"path":"[^"]*"'; done | sort -u`,
      prints: /^"path":"\/items"\n"path":"\/v1\/items"\n$/,
    },
  ],
} satisfies Example
