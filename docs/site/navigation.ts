/** A group of pages in the sidebar. */
export interface Group {
  readonly text: string
  /** Paths of the Markdown files, relative to `docs`. Their titles are those of the pages. */
  readonly pages: readonly string[]
}

/** The sidebar: every page of the site, grouped by what the reader wants to do. `e2e/suites/docs/site.test.ts` checks that no page is missing. */
export const navigation: readonly Group[] = [
  {
    text: 'Start',
    pages: [
      'README.md',
      'guide/getting-started.md',
      'guide/run.md',
      'guide/standalone.md',
      'guide/config-file.md',
      'guide/examples.md',
      'guide/compare.md',
      'guide/migrate.md',
    ],
  },
  {
    text: 'HTTP traffic',
    pages: [
      'guide/routing.md',
      'guide/grpc.md',
      'guide/tls.md',
      'guide/certificates.md',
      'guide/frontend.md',
      'guide/traffic-policies.md',
      'guide/authentication.md',
      'guide/login.md',
      'guide/expressions.md',
      'guide/external-authorization.md',
      'guide/external-processing.md',
      'guide/plugins.md',
      'guide/plugin-tutorial.md',
      'guide/global-rate-limits.md',
      'guide/backends.md',
      'guide/dynamic-forward-proxy.md',
      'guide/failures.md',
    ],
  },
  {
    text: 'LLM traffic',
    pages: [
      'guide/llm.md',
      'guide/coding-agents.md',
      'guide/llm-apps.md',
      'guide/clients.md',
      'guide/llm-providers.md',
      'guide/self-hosted-models.md',
      'guide/models.md',
      'guide/rerank-moderations.md',
      'guide/prompt-guards.md',
      'guide/inference-pools.md',
    ],
  },
  {
    text: 'MCP traffic',
    pages: [
      'guide/mcp.md',
      'guide/mcp-tools.md',
      'guide/mcp-guards.md',
      'guide/mcp-openapi.md',
      'guide/mcp-grpc.md',
      'guide/mcp-servers.md',
      'guide/mcp-authentication.md',
      'guide/a2a.md',
    ],
  },
  {
    text: 'Kubernetes',
    pages: ['guide/kubernetes.md', 'guide/production.md', 'guide/monitoring.md', 'guide/gitops.md', 'guide/upgrade.md'],
  },
  {
    text: 'Operations',
    pages: [
      'guide/proxyctl.md',
      'guide/ledger.md',
      'guide/telemetry.md',
      'guide/llm-traces.md',
      'guide/console.md',
      'guide/console-edits.md',
      'guide/management-endpoints.md',
      'guide/troubleshooting.md',
    ],
  },
  {
    text: 'Reference',
    pages: [
      'reference/README.md',
      'reference/proxypolicy.md',
      'reference/proxybackend.md',
      'reference/proxyparameters.md',
      'reference/config.md',
      'reference/errors.md',
      'reference/llm-providers.md',
      'reference/llm-rules.md',
      'reference/management-api/README.md',
      'reference/messages/README.md',
    ],
  },
  {
    text: 'Design',
    pages: [
      'architecture.md',
      'spec/README.md',
      'spec/traffic.md',
      'spec/llm.md',
      'spec/mcp.md',
      'spec/operator.md',
      'adr/README.md',
      'adr/house.md',
      'adr/dependencies.md',
      'contributing/style.md',
    ],
  },
  {
    text: 'Performance notes',
    pages: [
      'performance/README.md',
      'performance/http1.md',
      'performance/http2.md',
      'performance/streams.md',
      'performance/llm.md',
      'performance/mcp.md',
      'performance/plugins.md',
      'performance/memory.md',
      'performance/control-plane.md',
    ],
  },
]
