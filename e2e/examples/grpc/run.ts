import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [
    { name: 'echo-v1', port: 9001 },
    { name: 'echo-v2', port: 9002 },
  ],
  commands: [
    {
      title: 'a method without a route: status 12, UNIMPLEMENTED',
      command:
        "printf '\\000\\000\\000\\000\\000' | curl -si --http2-prior-knowledge -H 'content-type: application/grpc' -H 'te: trailers' --data-binary @- http://localhost:8080/other.Service/Call",
      prints: /grpc-status: 12/i,
    },
  ],
} satisfies Example
