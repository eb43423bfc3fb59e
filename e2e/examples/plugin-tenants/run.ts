import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    { title: 'an unknown tenant: 403', command: 'curl -s http://localhost:8080/', prints: /^{"error":"unknown tenant"}$/ },
    { title: 'a known tenant', command: "curl -si -H 'x-tenant: a' http://localhost:8080/ | grep -i '^x-served-by'", prints: /^x-served-by: version-1/i },
  ],
} satisfies Example
