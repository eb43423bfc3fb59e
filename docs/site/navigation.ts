/** A group of pages in the sidebar. */
export interface Group {
  readonly text: string
  readonly pages: readonly Page[]
}

interface Page {
  readonly text: string
  /** Path of the Markdown file, relative to `docs`. */
  readonly file: string
}

const guide = (text: string, name: string): Page => ({ text, file: `guide/${name}.md` })

/** The sidebar: every page of the site, grouped by what the reader wants to do. `e2e/suites/docs/site.test.ts` checks that no page is missing. */
export const navigation: readonly Group[] = [
  {
    text: 'Start',
    pages: [
      { text: 'Overview', file: 'README.md' },
      guide('Getting started', 'getting-started'),
      guide('Ways to run', 'run'),
      guide('Standalone', 'standalone'),
      guide('Config file', 'config-file'),
      guide('Examples', 'examples'),
      guide('Migrate from another gateway', 'migrate'),
    ],
  },
  {
    text: 'HTTP traffic',
    pages: [
      guide('Routing', 'routing'),
      guide('TLS', 'tls'),
      guide('Certificates', 'certificates'),
      guide('Client connections', 'frontend'),
      guide('Traffic policies', 'traffic-policies'),
      guide('Authentication and limits', 'authentication'),
      guide('Log people in', 'login'),
      guide('CEL expressions', 'expressions'),
      guide('External authorization', 'external-authorization'),
      guide('External processing', 'external-processing'),
      guide('Plugins', 'plugins'),
      guide('Plugin tutorial', 'plugin-tutorial'),
      guide('Global rate limits', 'global-rate-limits'),
      guide('Backend policies', 'backends'),
      guide('Dynamic forward proxy', 'dynamic-forward-proxy'),
      guide('Failures of policies', 'failures'),
    ],
  },
  {
    text: 'LLM traffic',
    pages: [
      guide('LLM providers', 'llm'),
      guide('Coding agents', 'coding-agents'),
      guide('SDKs and applications', 'llm-apps'),
      guide('Clients and providers', 'clients'),
      guide('Self-hosted models', 'self-hosted-models'),
      guide('Models as routes', 'models'),
      guide('Guardrails', 'prompt-guards'),
      guide('Inference pools', 'inference-pools'),
    ],
  },
  {
    text: 'MCP traffic',
    pages: [
      guide('MCP servers', 'mcp'),
      guide('MCP tools', 'mcp-tools'),
      guide('MCP guards', 'mcp-guards'),
      guide('HTTP APIs as MCP tools', 'mcp-openapi'),
      guide('gRPC servers as MCP tools', 'mcp-grpc'),
      guide('MCP servers from images', 'mcp-servers'),
      guide('MCP authentication', 'mcp-authentication'),
      guide('A2A agents', 'a2a'),
    ],
  },
  {
    text: 'Kubernetes',
    pages: [
      guide('Install and operate', 'kubernetes'),
      guide('Production', 'production'),
      guide('Monitoring', 'monitoring'),
      guide('GitOps', 'gitops'),
      guide('Upgrade', 'upgrade'),
    ],
  },
  {
    text: 'Operations',
    pages: [
      guide('proxyctl', 'proxyctl'),
      guide('Request log', 'ledger'),
      guide('Telemetry', 'telemetry'),
      guide('Console', 'console'),
      guide('Edit from the console', 'console-edits'),
      guide('Management endpoints', 'management-endpoints'),
      guide('Troubleshooting', 'troubleshooting'),
    ],
  },
  {
    text: 'Reference',
    pages: [
      { text: 'Contents', file: 'reference/README.md' },
      { text: 'ProxyPolicy', file: 'reference/proxypolicy.md' },
      { text: 'ProxyBackend', file: 'reference/proxybackend.md' },
      { text: 'ProxyParameters', file: 'reference/proxyparameters.md' },
      { text: 'Config', file: 'reference/config.md' },
      { text: 'Errors', file: 'reference/errors.md' },
      { text: 'Rules of LLM targets', file: 'reference/llm-rules.md' },
      { text: 'Management API', file: 'reference/management-api/README.md' },
      { text: 'Messages', file: 'reference/messages/README.md' },
    ],
  },
  {
    text: 'Design',
    pages: [
      { text: 'Architecture', file: 'architecture.md' },
      { text: 'Specification', file: 'spec/README.md' },
      { text: 'Traffic', file: 'spec/traffic.md' },
      { text: 'LLM', file: 'spec/llm.md' },
      { text: 'MCP', file: 'spec/mcp.md' },
      { text: 'Operator', file: 'spec/operator.md' },
      { text: 'Decision records', file: 'adr/README.md' },
      { text: 'Plan of the directories', file: 'adr/house.md' },
      { text: 'Dependencies', file: 'adr/dependencies.md' },
      { text: 'Style of documentation', file: 'contributing/style.md' },
    ],
  },
  {
    text: 'Performance notes',
    pages: [
      { text: 'Contents', file: 'performance/README.md' },
      { text: 'HTTP/1.1', file: 'performance/http1.md' },
      { text: 'HTTP/2', file: 'performance/http2.md' },
      { text: 'Streams', file: 'performance/streams.md' },
      { text: 'LLM', file: 'performance/llm.md' },
      { text: 'MCP', file: 'performance/mcp.md' },
      { text: 'Plugins', file: 'performance/plugins.md' },
      { text: 'Memory', file: 'performance/memory.md' },
      { text: 'Control plane', file: 'performance/control-plane.md' },
    ],
  },
]
