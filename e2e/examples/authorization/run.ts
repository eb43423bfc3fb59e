import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'upstream', port: 9001 }],
  commands: [
    { title: 'everyone may read', command: 'curl -s http://localhost:8080/reports', prints: /"name":"upstream"/ },
    { title: 'not everyone may write', command: "curl -s -d '' http://localhost:8080/reports", prints: /^authorization failed$/ },
    { title: 'finance may', command: "curl -s -d '' -H 'x-team: finance' http://localhost:8080/reports", prints: /"method":"POST"/ },
    { title: 'a model that is allowed', command: `curl -s -d '{"model":"small"}' http://localhost:8080/chat`, prints: /"name":"upstream"/ },
    { title: 'one that is not', command: `curl -s -d '{"model":"huge"}' http://localhost:8080/chat`, prints: /^authorization failed$/ },
  ],
} satisfies Example
