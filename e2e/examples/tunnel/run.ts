import type { Example } from '../../harness/example/example.ts'

export default {
  certificates: [{ name: 'partner', hosts: ['localhost'], isSecret: false }],
  upstreams: [
    { name: 'partner', port: 9001, kind: 'tls' },
    { name: 'egress', port: 9002, kind: 'forward-proxy' },
  ],
  commands: [
    { title: 'a response of the partner through the forward proxy', command: 'curl -s http://localhost:8080/partner', prints: /"name":"partner"/ },
    {
      title: 'a host that the forward proxy rejects: 503',
      command: "curl -s -w ' %{http_code}' http://localhost:8080/elsewhere",
      prints: /upstream call failed: connection failed 503$/,
    },
  ],
} satisfies Example
