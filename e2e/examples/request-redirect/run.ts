import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'site', port: 9001 }],
  certificates: [{ name: 'redirect-cert', hosts: ['localhost', '127.0.0.1'] }],
  commands: [
    { title: 'HTTP to HTTPS', command: "curl -si 'http://localhost:8080/a?b=1' | grep -i location", prints: /location: https:\/\/localhost:8443\/a\?b=1/i },
    {
      title: 'a redirect that curl follows',
      command: 'curl -sL --cacert {dir}/generated/ca.crt http://localhost:8080/old/page',
      prints: /"path":"\/new\/page"/,
    },
  ],
} satisfies Example
