import type { Example } from '../../harness/example/example.ts'

const preflight = (origin: string) =>
  `curl -si -X OPTIONS -H 'Origin: ${origin}' -H 'Access-Control-Request-Method: PUT' http://localhost:8080/ | grep -i '^access-control' || echo none`

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    {
      title: 'a preflight without credentials succeeds',
      command: preflight('https://shop.example.com'),
      prints: /allow-origin: https:\/\/shop\.example\.com/i,
    },
    { title: 'a wildcard matches any subdomain', command: preflight('https://a.b.partner.example.com'), prints: /allow-methods: GET,PUT/i },
    { title: 'other origins get no CORS headers', command: preflight('https://evil.example.com'), prints: /^none\n$/ },
  ],
} satisfies Example
