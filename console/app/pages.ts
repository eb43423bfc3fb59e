import type { ComponentType } from 'preact'

/** A page of the console. Its code is loaded when it is first opened. */
export interface Page {
  /** First part of its location. */
  readonly name: string
  readonly title: string
  /** The letter after `g`. */
  readonly key: string
  /** Path of a 20 by 20 icon, drawn as a line. */
  readonly icon: string
  readonly load: () => Promise<ComponentType>
}

export const pages: readonly Page[] = [
  {
    name: 'overview',
    title: 'Overview',
    key: 'o',
    icon: 'M3 10h3m8-5h3M14 10h3m-3 5h3M6 10c4 0 4-5 8-5M6 10h8m-8 0c4 0 4 5 8 5',
    load: async () => (await import('../pages/overview/page.tsx')).OverviewPage,
  },
  {
    name: 'routes',
    title: 'Routes',
    key: 'r',
    icon: 'M4 5h7a3 3 0 0 1 0 6H8a3 3 0 0 0 0 6h8m-2-2 2 2-2 2',
    load: async () => (await import('../pages/routes/page.tsx')).RoutesPage,
  },
  {
    name: 'requests',
    title: 'Requests',
    key: 'q',
    icon: 'M3 5h14M3 10h14M3 15h9',
    load: async () => (await import('../pages/requests/page.tsx')).RequestsPage,
  },
  {
    name: 'llm',
    title: 'LLM',
    key: 'l',
    icon: 'M4 5h12v8h-6l-3 3v-3H4zm3 4h6',
    load: async () => (await import('../pages/llm/page.tsx')).LlmPage,
  },
  {
    name: 'spend',
    title: 'Spend',
    key: 's',
    icon: 'M3 4v12h14M6 7l4 4 3-2 4 5',
    load: async () => (await import('../pages/spend/page.tsx')).SpendPage,
  },
  {
    name: 'mcp',
    title: 'MCP',
    key: 'm',
    icon: 'M4 5h5v4H4zm7 6h5v4h-5zM9 7h4v4m-6-2v4h4',
    load: async () => (await import('../pages/mcp/page.tsx')).McpPage,
  },
  {
    name: 'edit',
    title: 'Edit',
    key: 'd',
    icon: 'M4 16h3l9-9-3-3-9 9zM12 5l3 3',
    load: async () => (await import('../pages/edit/page.tsx')).EditPage,
  },
  {
    name: 'expressions',
    title: 'Expressions',
    key: 'e',
    icon: 'M6 4H5a2 2 0 0 0-2 2v2l-1 2 1 2v2a2 2 0 0 0 2 2h1m8-12h1a2 2 0 0 1 2 2v2l1 2-1 2v2a2 2 0 0 1-2 2h-1M8 8l4 4m0-4-4 4',
    load: async () => (await import('../pages/expressions/page.tsx')).ExpressionsPage,
  },
  {
    name: 'config',
    title: 'Config',
    key: 'c',
    icon: 'm7 6-4 4 4 4m6-8 4 4-4 4m-2-10-2 12',
    load: async () => (await import('../pages/config/page.tsx')).ConfigPage,
  },
]
