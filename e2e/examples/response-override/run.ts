import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    { title: 'a page of the ConfigMap', command: "curl -s 'http://localhost:8080/app?status=500'", prints: /^<h1>Something went wrong<\/h1>/ },
    {
      title: 'a redirect',
      command: "curl -s -o /dev/null -w '%{http_code} %{redirect_url}' 'http://localhost:8080/app?status=503'",
      prints: /^302 https:\/\/status.example.com\/$/,
    },
    { title: 'a request that matches no route', command: 'curl -s http://localhost:8080/', prints: /^<h1>Not here<\/h1>$/ },
    { title: 'another response', command: "curl -s 'http://localhost:8080/app?status=201'", prints: /"name":"app"/ },
  ],
} satisfies Example
