/** The fields of an MCP backend that decide the names of tools (`MCPBackend`). */
interface ToolNaming {
  readonly prefixMode?: string
  readonly targets: readonly {
    readonly name: string
    readonly tools?: { readonly overrides?: readonly { readonly name: string; readonly rename?: string }[] }
  }[]
}

/** A name that clients see for two configured tools. */
export interface ToolClash {
  /** Position of the later entry in the backend. */
  readonly path: readonly ['targets', number, 'tools', 'overrides', number]
  readonly message: string
}

/**
 * Entries of `tools.overrides` whose names for clients clash: within a target, and with `prefixMode: Never` also between targets. Tools without
 * an entry are not known before a server lists them.
 */
export function findToolClashes({ prefixMode, targets }: ToolNaming): ToolClash[] {
  const clashes: ToolClash[] = []
  const isShared = prefixMode === 'Never'
  const backend = new Map<string, string>()
  targets.forEach((target, at) => {
    const owners = isShared ? backend : new Map<string, string>()
    target.tools?.overrides?.forEach(({ name, rename }, index) => {
      // Servers may have tools of one name; only names that the config sets are a mistake of it.
      const shown = rename ?? name
      const owner = `${name} of target ${target.name}`
      const rival = owners.get(shown)
      if (rival === undefined) owners.set(shown, owner)
      else
        clashes.push({
          path: ['targets', at, 'tools', 'overrides', index],
          message: `tools ${rival} and ${owner} are both ${shown} for clients, so neither is offered; rename one`,
        })
    })
  })
  return clashes
}
