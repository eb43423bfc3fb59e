import { readFileSync } from 'node:fs'
import { parseAllDocuments } from 'yaml'
import type { Kind } from '../source/objects.ts'
import { createReader, type Load } from '../source/reader.ts'
import { createSnapshot } from '../source/snapshot.ts'
import { normalize, type RawObject } from './normalize.ts'

type Written = RawObject & { readonly kind: Kind }

/**
 * Reads the manifests of a test. With a line `# CRDs: another version`, objects that the supported CRDs reject are read as from an API server whose CRDs
 * accept them: translation must handle them, too.
 */
export async function loadManifests(file: string): Promise<Pick<Load, 'snapshot' | 'problems'>> {
  const text = readFileSync(file, 'utf8')
  const loaded = await createReader(file).load()
  if (!/^# CRDs: another version$/m.test(text)) return loaded
  if (loaded.problems.length === 0) throw new Error(`${file}: the supported CRDs accept every object; remove the line "# CRDs: another version"`)
  const written = parseAllDocuments(text).flatMap((document) => {
    const raw = document.toJS() as Written | null
    if (raw === null) return []
    const known = loaded.objects.find(({ kind, metadata }) => kind === raw.kind && metadata.name === raw.metadata.name)
    return [known ?? normalize(raw.kind, { ...raw, metadata: { namespace: 'default', ...raw.metadata } })]
  })
  const dated = written.map((object, index) => ({ ...object, metadata: { ...object.metadata, creationTimestamp: `2000-01-01T00:00:0${index}Z` } }))
  return { snapshot: createSnapshot([...loaded.objects.filter(({ kind }) => kind === 'GatewayClass'), ...dated]), problems: [] }
}
