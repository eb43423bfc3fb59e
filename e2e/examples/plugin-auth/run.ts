import type { Example } from '../../harness/example/example.ts'

const call = (key: string): string => `curl -s -H 'Authorization: Bearer ${key}' http://localhost:8080/`

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    { title: 'without a credential: 401', command: 'curl -s http://localhost:8080/', prints: /^{"error":"no credential"}$/ },
    { title: 'the service does not know the credential: 403', command: call('other'), prints: /^{"error":"unknown credential"}$/ },
    { title: 'the upstream receives the user', command: call('demo-key-ann'), prints: /"x-user":"ann"/ },
  ],
} satisfies Example
