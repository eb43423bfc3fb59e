import { useState } from 'preact/hooks'
import { overview } from '../../api/live.ts'
import { Panel } from '../../ui/panel.tsx'
import { usesOf, writeManifest } from './manifest.ts'

/** A manifest to apply that uses the expression: the console itself changes nothing. */
export function ManifestPanel({ phase, expression }: { readonly phase: string; readonly expression: string }) {
  const [use, setUse] = useState('')
  const [namespace = 'default', name = 'web'] = overview.value?.gateways[0]?.key.split('/', 2) ?? []
  const text = writeManifest(phase, use, expression, { namespace, name })
  if (text === undefined) return null
  const titles = usesOf(phase)
  return (
    <Panel
      title="As a manifest"
      aside={
        <label>
          <select
            aria-label="Use of the expression"
            value={titles.includes(use) ? use : titles[0]}
            onChange={({ currentTarget }) => setUse(currentTarget.value)}
          >
            {titles.map((title) => (
              <option key={title}>{title}</option>
            ))}
          </select>
        </label>
      }
    >
      <pre class="text body" tabIndex={0} aria-label="Manifest">
        {text}
      </pre>
    </Panel>
  )
}
