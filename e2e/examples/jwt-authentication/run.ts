import type { Example } from '../../harness/example/example.ts'
import { tokens } from './tokens.ts'

const call = (token: string) => `curl -s -H 'Authorization: Bearer ${token}' http://localhost:8080/`

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    { title: 'without a token: 401', command: 'curl -s http://localhost:8080/', prints: /^authentication failure: no bearer token found$/ },
    { title: 'with a valid token', command: call(tokens.valid), prints: /"name":"app"/ },
    { title: 'with an expired token: 401', command: call(tokens.expired), prints: /^authentication failure: ExpiredSignature$/ },
  ],
} satisfies Example
