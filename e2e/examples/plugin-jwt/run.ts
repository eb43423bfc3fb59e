import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  certificates: [{ name: 'signer', hosts: ['gateway.example.com'] }],
  commands: [
    {
      title: 'the upstream receives a token of the gateway',
      command: "curl -s -H 'x-user: ann' http://localhost:8080/",
      prints: /"authorization":"Bearer eyJ/,
    },
    { title: 'without a user: 401', command: 'curl -s http://localhost:8080/', prints: /^{"error":"no user"}$/ },
  ],
} satisfies Example
