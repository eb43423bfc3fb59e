import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [
    { name: 'stable', port: 9001 },
    { name: 'beta', port: 9002 },
    { name: 'nightly', port: 9003 },
  ],
  commands: [
    { title: 'no header: stable', command: 'curl -s http://localhost:8080/', prints: /"name":"stable"/ },
    { title: 'one header: beta', command: "curl -s -H 'x-version: v2' http://localhost:8080/", prints: /"name":"beta"/ },
    { title: 'two headers: nightly', command: "curl -s -H 'x-version: v2' -H 'x-tester: team-red' http://localhost:8080/", prints: /"name":"nightly"/ },
    { title: 'a query parameter: nightly', command: "curl -s 'http://localhost:8080/?preview=1'", prints: /"name":"nightly"/ },
  ],
} satisfies Example
