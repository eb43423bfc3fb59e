import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    {
      title: 'the upstream receives a signature',
      command: "curl -s -d 'an order' 'http://localhost:8080/orders?id=1'",
      prints: /"x-signature":"time=\d+, sha256=[0-9a-f]{64}"/,
    },
  ],
} satisfies Example
