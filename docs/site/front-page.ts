/** The head of the front page, above the text of `docs/README.md`: what it is, and four ways in. */
export const frontPage = {
  layout: 'home',
  hero: {
    name: 'Proxy Service',
    text: 'One gateway for HTTP, gRPC, LLM and MCP traffic',
    tagline: 'On Kubernetes by Gateway API, or on one machine with a file of ten lines. Every policy fails closed, and says why.',
    actions: [
      { theme: 'brand', text: 'Getting started', link: '/guide/getting-started' },
      { theme: 'alt', text: 'Compare', link: '/guide/compare' },
    ],
  },
  features: [
    {
      title: 'Models and tools on one machine',
      details: 'A config file with models and MCP servers; npx, one executable, a Debian package or a container.',
      link: '/guide/run',
      linkText: 'Ways to run',
    },
    {
      title: 'Kubernetes',
      details: 'Gateways, routes and policies as objects; the operator provisions the data planes.',
      link: '/guide/kubernetes',
      linkText: 'Install',
    },
    {
      title: 'SDKs and coding agents',
      details: 'Claude Code, Codex CLI, the SDKs of OpenAI and Anthropic, LangChain and others, to any provider.',
      link: '/guide/coding-agents',
      linkText: 'Settings of clients',
    },
    {
      title: 'From another gateway',
      details: 'LiteLLM, agentgateway, Kong, ingress-nginx and Envoy Gateway: what is translated, and what is lost.',
      link: '/guide/migrate',
      linkText: 'Migrate',
    },
  ],
}
