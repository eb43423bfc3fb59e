import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [
    { name: 'first', port: 9001 },
    { name: 'second', port: 9002 },
    { name: 'pages', port: 9003 },
    { name: 'bytes', port: 9004, kind: 'tcp' },
  ],
  certificates: [{ name: 'server', hosts: ['localhost', '127.0.0.1'], isSecret: false }],
  commands: [
    {
      title: 'a rewritten request to first or second',
      command: 'curl -s http://localhost:8080/api/users',
      prints: /"name":"(first|second)".*"path":"\/users"/,
    },
    { title: 'a service with endpoints', command: 'curl -s http://localhost:8080/', prints: /"name":"pages"/ },
    { title: 'HTTPS', command: 'curl -s --cacert {dir}/generated/ca.crt https://localhost:8443/', prints: /"name":"first"/ },
    { title: 'the config of the data plane', command: 'curl -s http://localhost:15000/config_dump | head -c 300', prints: /./ },
  ],
} satisfies Example
