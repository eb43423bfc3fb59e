import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [
    { name: 'app', port: 9001 },
    { name: 'login', port: 9002, kind: 'idp' },
  ],
  commands: [
    {
      title: 'a program without a session: 401',
      command: 'curl -s http://localhost:8080/',
      prints: /^\{"error":"login","message":"login required"\}$/,
    },
    {
      title: 'a browser is sent to the provider',
      command: "curl -si http://localhost:8080/cart -H 'Accept: text/html'",
      prints: /^HTTP\/1.1 302[^]*location: http:\/\/localhost:9002\/realms\/shop\/[^]*code_challenge_method=S256[^]*set-cookie: proxy-login-/i,
    },
  ],
} satisfies Example
