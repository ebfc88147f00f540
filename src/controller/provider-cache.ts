export { createPlaces as createProviderCache, type Places as ProviderCache } from '../provision/places.ts';
