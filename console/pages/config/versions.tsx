import { useEffect, useState } from 'preact/hooks'
import type { ConfigVersionDetail, ConfigVersions } from '#api/management/config.ts'
import { get } from '../../api/client.ts'
import { linkTo, location } from '../../ui/router.ts'
import { formatAge, formatTime } from '../../ui/format.ts'
import { Badge, type Tone } from '../../ui/panel.tsx'
import { ErrorBox, Loading } from '../../ui/states.tsx'

const TONES: Readonly<Record<string, Tone>> = { added: 'good', changed: 'warn', removed: 'bad' }

/** The versions, each with its differences, which are read when it is opened (`?version=`). */
export function Versions({ versions }: Pick<ConfigVersions, 'versions'>) {
  const open = Number(location.value.query.get('version') ?? Number.NaN)
  return (
    <ol class="versions">
      {versions.map(({ version, appliedAtMs, counts, pod }) => (
        <li key={`${version} ${pod}`}>
          <a class="version" href={open === version ? linkTo(['config']) : linkTo(['config'], { version: String(version) })} aria-expanded={open === version}>
            <strong>version {version}</strong>
            <span class="muted">
              {formatTime(appliedAtMs)}, {formatAge(Date.now() - appliedAtMs)} ago{pod === null ? '' : `, pod ${pod}`}
            </span>
            <span class="counts">
              {(['added', 'changed', 'removed'] as const)
                .filter((kind) => counts[kind] > 0)
                .map((kind) => (
                  <Badge key={kind} tone={TONES[kind] ?? 'plain'}>
                    {counts[kind]} {kind}
                  </Badge>
                ))}
            </span>
          </a>
          {open === version && <Changes version={version} />}
        </li>
      ))}
    </ol>
  )
}

function Changes({ version }: { readonly version: number }) {
  const [detail, setDetail] = useState<ConfigVersionDetail>()
  const [error, setError] = useState<string>()
  useEffect(() => {
    get<ConfigVersionDetail>(`/api/v1/config/versions/${version}`).then(setDetail, (failure: Error) => setError(failure.message))
  }, [version])
  if (error !== undefined) return <ErrorBox title="The differences cannot be read" message={error} />
  if (detail === undefined) return <Loading />
  return (
    <ul class="changes">
      {detail.changes.map(({ kind, key, change, differences }) => (
        <li key={`${kind} ${key}`}>
          <p>
            <Badge tone={TONES[change] ?? 'plain'}>{change}</Badge> {kind} <code>{key}</code>
          </p>
          {differences.map(({ path, before, after }) => (
            <div class="difference" key={path}>
              <code>{path}</code>
              {isPresent(before) && <pre class="before">- {text(before)}</pre>}
              {isPresent(after) && <pre class="after">+ {text(after)}</pre>}
            </div>
          ))}
        </li>
      ))}
    </ul>
  )
}

/** The config has no null: the API writes it for what is absent. */
const isPresent = (value: unknown): boolean => value !== undefined && value !== null

const text = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value, undefined, 2))
