import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    {
      title: 'a form of another site: 403',
      command: "curl -s -d a=b -H 'Sec-Fetch-Site: cross-site' http://localhost:8080/",
      prints: /^CSRF validation failed$/,
    },
    {
      title: 'a form of an allowed site',
      command: "curl -s -d a=b -H 'Sec-Fetch-Site: cross-site' -H 'Origin: https://forms.example.com' http://localhost:8080/",
      prints: /"name":"app"/,
    },
    { title: 'a form of the site itself', command: "curl -s -d a=b -H 'Sec-Fetch-Site: same-origin' http://localhost:8080/", prints: /"name":"app"/ },
  ],
} satisfies Example
