import { canonicalJson } from '../../shared/json.ts';
import { perObject } from '../../shared/per-object.ts';
import type { KnownMarkets, KnownZone, PlaceableOffer, PlacementMemory } from '../placement.ts';
import type { Task } from '../task.ts';
import { addZones } from './placer.ts';

/** Limit of remembered searches beside the last one: an update has two versions, and a third one while it is replaced. */
const mostOthers = 2;

/** Equal for tasks whose searches find the same offers: versions that differ otherwise share what was seen. */
export const searchOf = perObject(({ resources, numNodes }: Pick<Task, 'resources' | 'numNodes'>): string => {
  const unused = { ports: undefined, imageId: undefined, labels: undefined, networkTier: undefined, otherFields: undefined };
  return canonicalJson({ choices: resources.choices.map((choice) => ({ ...choice, ...unused })), numNodes });
});

/** What searches for these machines have seen; undefined when there was none. */
export function marketsFor(memory: PlacementMemory | undefined, search: string): KnownMarkets | undefined {
  if (memory === undefined || memory.search === undefined || memory.search === search) return memory;
  return memory.otherMarkets?.find((one) => one.search === search);
}

/** What a search for these machines uses of the memory. */
export function memoryFor(memory: PlacementMemory, search: string): Pick<PlacementMemory, 'refusals' | 'starts' | 'spotZones'> {
  const { spotZones } = marketsFor(memory, search) ?? {};
  return { refusals: memory.refusals, starts: memory.starts, ...(spotZones !== undefined && { spotZones }) };
}

/** Adds the spot zones among a search's offers, and the prices of both markets. */
export function withOffers(memory: PlacementMemory, search: string, offers: readonly PlaceableOffer[]): PlacementMemory {
  const { search: last, spotZones, onDemandUsd, otherMarkets = [], ...rest } = memory;
  // Zones and prices of an older record may be those of another version of the file.
  const known = last === undefined ? undefined : marketsFor(memory, search);
  const zones = addZones(known?.spotZones ?? [], offers);
  const prices = offers.filter(({ spot }) => !spot).map(({ hourlyUsd }) => hourlyUsd);
  const usd = prices.length === 0 ? known?.onDemandUsd : Math.min(...prices);
  if (last === search && zones === spotZones && usd === onDemandUsd) return memory;
  const before = last === undefined || last === search ? [] : [{ search: last, ...kept({ spotZones, onDemandUsd }) }];
  const others = [...before, ...otherMarkets.filter((one) => one.search !== search)].slice(0, mostOthers);
  return { ...rest, search, ...kept({ spotZones: zones, onDemandUsd: usd }), ...(others.length > 0 && { otherMarkets: others }) };
}

/** Changes the zones of each search. */
export function withZones(memory: PlacementMemory, change: (zones: readonly KnownZone[]) => readonly KnownZone[]): PlacementMemory {
  const changed = <Markets extends KnownMarkets>(markets: Markets): Markets => {
    const { spotZones = [] } = markets;
    const zones = change(spotZones);
    return zones === spotZones ? markets : { ...markets, spotZones: zones };
  };
  const others = memory.otherMarkets?.map((one) => changed(one));
  const isSame = others === undefined || others.every((one, index) => one === memory.otherMarkets?.[index]);
  return changed(isSame ? memory : { ...memory, otherMarkets: others });
}

function kept({ spotZones, onDemandUsd }: { readonly [Key in 'spotZones' | 'onDemandUsd']: KnownMarkets[Key] | undefined }): KnownMarkets {
  return { ...(spotZones !== undefined && { spotZones }), ...(onDemandUsd !== undefined && { onDemandUsd }) };
}
