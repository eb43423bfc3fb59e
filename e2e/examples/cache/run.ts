import type { Example } from '../../harness/example/example.ts'

const url = "'http://localhost:8080/pages?header=cache-control:max-age=60'"

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    {
      title: 'the second request gets the stored response',
      command: `for i in 1 2; do curl -si ${url} | grep -i '^cache-status'; done`,
      prints: /fwd=uri-miss[^]*hit; ttl=\d+/,
    },
  ],
} satisfies Example
