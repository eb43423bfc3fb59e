import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'upstream', port: 9001 }],
  commands: [
    { title: 'everyone may read', command: 'curl -s http://localhost:8080/reports', prints: /"name":"upstream"/ },
    { title: 'other teams may not write', command: "curl -s -d '' http://localhost:8080/reports", prints: /^authorization failed$/ },
    { title: 'the team finance may write', command: "curl -s -d '' -H 'x-team: finance' http://localhost:8080/reports", prints: /"method":"POST"/ },
    { title: 'an allowed model', command: `curl -s -d '{"model":"small"}' http://localhost:8080/chat`, prints: /"name":"upstream"/ },
    { title: 'a denied model', command: `curl -s -d '{"model":"huge"}' http://localhost:8080/chat`, prints: /^authorization failed$/ },
  ],
} satisfies Example
